/// The calls of the Secret Service that a store makes, over its own connection.
///
/// The vault's bytes are already encrypted, so the session is `plain`: no plaintext secret crosses
/// the bus.
///
/// https://specifications.freedesktop.org/secret-service/latest/
struct SecretService: ~Copyable {
  static let name = "org.freedesktop.secrets"
  private static let path = "/org/freedesktop/secrets"
  private static let interface = "org.freedesktop.Secret.Service"
  private static let collection = "org.freedesktop.Secret.Collection"
  private static let item = "org.freedesktop.Secret.Item"
  private static let properties = "org.freedesktop.DBus.Properties"
  /// The path that stands for "none".
  private static let none = "/"
  /// The maximum size of an answer with a secret in bytes: the limit of one array in a message, and
  /// more than the largest vault.
  private static let secretByteCount = 65 << 20

  private let bus: BusConnection
  private let session: String

  /// - Parameter bus: a connection for ``name``.
  init(_ bus: consuming BusConnection) throws(BusFailure) {
    try Self.introduce(bus)
    let reply = try bus.call(
      "OpenSession", of: Self.interface, on: Self.path, .string("plain"), .variant(.string("")),
      answering: "(vo)")
    guard reply.count == 2, let session = reply[1].objectPath else { throw .misunderstood }
    self.bus = bus
    self.session = session
  }

  /// Registers this connection with the service before the first real call.
  ///
  /// GNOME Keyring (42 to 50) registers a new caller in one task of its main loop and answers in
  /// another. Sometimes the answer comes first, finds no caller, and the daemon crashes with all
  /// that it had unlocked. Looking up an alias that does not exist needs no caller. After its
  /// answer, the registration is the next task:
  /// https://gitlab.gnome.org/GNOME/gnome-keyring/-/issues/195.
  private static func introduce(_ bus: borrowing BusConnection) throws(BusFailure) {
    _ = try bus.call(
      "ReadAlias", of: interface, on: path, .string("datavault-introduction"), answering: "(o)")
  }

  /// The items with at least these attributes, in every collection.
  func search(
    _ attributes: [String: String]
  ) throws(BusFailure) -> (unlocked: [String], locked: [String]) {
    let reply = try bus.call(
      "SearchItems", of: Self.interface, on: Self.path, .texts(attributes), answering: "(aoao)")
    guard reply.count == 2, let unlocked = reply[0].objectPaths,
      let locked = reply[1].objectPaths
    else { throw .misunderstood }
    return (unlocked, locked)
  }

  /// The collection for new items.
  ///
  /// - Throws: `unreachable` if the user has no default collection.
  func defaultCollection() throws(BusFailure) -> String {
    let reply = try bus.call(
      "ReadAlias", of: Self.interface, on: Self.path, .string("default"), answering: "(o)")
    guard let path = reply.first?.objectPath else { throw .misunderstood }
    guard path != Self.none else {
      throw BusFailure(.unreachable, "the secret service has no default collection")
    }
    return path
  }

  func isLocked(_ collection: String) throws(BusFailure) -> Bool {
    let reply = try bus.call(
      "Get", of: Self.properties, on: collection, .string(Self.collection), .string("Locked"),
      answering: "(v)")
    guard let isLocked = reply.first?.inner?.boolean else { throw .misunderstood }
    return isLocked
  }

  func attributes(of item: String) throws(BusFailure) -> [String: String] {
    let reply = try bus.call(
      "Get", of: Self.properties, on: item, .string(Self.item), .string("Attributes"),
      answering: "(v)")
    guard let attributes = reply.first?.inner?.texts else { throw .misunderstood }
    return attributes
  }

  /// Replaces an item's attributes in one step, so that the item is never without a role.
  func setAttributes(_ attributes: [String: String], of item: String) throws(BusFailure) {
    _ = try bus.call(
      "Set", of: Self.properties, on: item, .string(Self.item), .string("Attributes"),
      .variant(.texts(attributes)), answering: "()")
  }

  func secret(of item: String) throws(BusFailure) -> [UInt8] {
    let reply = try bus.call(
      "GetSecret", of: Self.item, on: item, .objectPath(session), answering: "((oayays))",
      of: Self.secretByteCount)
    guard let parts = reply.first?.elements, parts.count == 4, let bytes = parts[2].bytes else {
      throw .misunderstood
    }
    return bytes
  }

  func setSecret(_ bytes: [UInt8], of item: String) throws(BusFailure) {
    _ = try bus.call("SetSecret", of: Self.item, on: item, secret(bytes), answering: "()")
  }

  /// Creates an item; not atomic, so the attributes must not be the final ones.
  func createItem(
    in collection: String, label: String, attributes: [String: String], secret bytes: [UInt8]
  ) throws(BusFailure) -> String {
    let reply = try bus.call(
      "CreateItem", of: Self.collection, on: collection,
      .properties([
        "\(Self.item).Label": .string(label), "\(Self.item).Attributes": .texts(attributes),
      ]), secret(bytes), .boolean(false), answering: "(oo)")
    guard reply.count == 2, let item = reply[0].objectPath else { throw .misunderstood }
    try Self.refusePrompt(reply[1])
    return item
  }

  func delete(_ item: String) throws(BusFailure) {
    let reply = try bus.call("Delete", of: Self.item, on: item, answering: "(o)")
    guard let prompt = reply.first else { throw .misunderstood }
    try Self.refusePrompt(prompt)
  }

  /// The structure that the specification calls Secret.
  private func secret(_ bytes: [UInt8]) -> BusValue {
    .tuple([.objectPath(session), .bytes([]), .bytes(bytes), .string("text/plain")])
  }

  /// Refuses a prompt: a store never asks the user, because a daemon has no user to ask.
  private static func refusePrompt(_ prompt: BusValue) throws(BusFailure) {
    guard prompt.objectPath == none else {
      throw BusFailure(.locked, "the secret service requires a prompt to the user")
    }
  }
}
