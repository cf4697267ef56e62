internal import StrictJSON

/// Where the brokers of a shard are, and what is known of their disks.
///
/// Each member keeps it in an item of its vault: `docs/reference/replication-format.md`, "Settings".
package struct ClusterSettings: Sendable, Equatable {
  /// The item of the vault that has them, of kind `string`.
  package static let itemName = "replication.settings"
  /// The most addresses of brokers.
  package static let mostAddresses = 64

  /// `nats://HOST:PORT` or `tls://HOST:PORT`, at least one.
  package var addresses: [String]
  /// The certificates of the authorities that brokers are checked with, in PEM; nil for those of the system.
  package var authority: String?
  /// Whether the node logs in with its nkey.
  package var logsIn = true
  /// The longest that a broker of the cluster keeps a record without a sync, in seconds; 0 for `sync: always`.
  ///
  /// Default: 300, that of NATS 2.9.
  package var syncSeconds = 300

  package init(addresses: [String], authority: String? = nil) {
    self.addresses = addresses
    self.authority = authority
  }

  /// Reads the JSON text of the item.
  ///
  /// - Throws: ``ReplicationError`` for a text of another form.
  package init(parsing text: [UInt8]) throws(ReplicationError) {
    guard let members = try? JSONReader.object(text, maximumDepth: 3),
      members.allSatisfy({ Self.memberNames.contains($0.name) }),
      members["version"]?.integer == 1,
      let addresses = members["addresses"]?.elements?.map(\.string),
      (1...Self.mostAddresses).contains(addresses.count), !addresses.contains(nil),
      let logsIn = members["login"]?.boolean, let seconds = members["syncSeconds"]?.integer,
      (0...86_400).contains(seconds),
      // Without it, the system's authorities would be trusted.
      members["authority"].map({ $0.string != nil }) ?? true
    else {
      throw ReplicationError(
        .damaged, "the settings of the cluster are not those of this version",
        hint: "use the version of datavaultd that wrote them, or join again")
    }
    self.addresses = addresses.compactMap(\.self)
    authority = members["authority"]?.string
    self.logsIn = logsIn
    syncSeconds = Int(seconds)
  }

  private static let memberNames: Set = [
    "version", "addresses", "authority", "login", "syncSeconds",
  ]

  /// The JSON text.
  package var text: [UInt8] {
    var members: [JSONMember] = [
      JSONMember("version", 1), JSONMember("addresses", .array(addresses.map(JSONValue.string))),
      JSONMember("login", .boolean(logsIn)),
      JSONMember("syncSeconds", .integer(Int64(syncSeconds))),
    ]
    if let authority { members.append(JSONMember("authority", .string(authority))) }
    return Array(JSONValue.object(members).text.utf8)
  }
}
