import SystemPackage

/// The memory of a server for each subscriber that waits in a long poll: its growth with more of them.
enum SubscriberMemory {
  static let name = "idle subscriber: memory each"
  private static let rounds = 3

  static func measure(_ servers: Servers, folder: FilePath) throws -> [ResultRow] {
    let identity = try servers.makeIdentity(in: folder)
    var (plain, encrypted, nchan): ([Double], [Double], [Double]) = ([], [], [])
    for round in 1...rounds {
      let application = try servers.makeApplication(in: folder.appending("home-\(round)"))
      plain.append(try growth(of: servers.start(application), upTo: 10_000, servers))
      encrypted.append(
        try growth(
          of: servers.start(application, identity: identity), upTo: 3_000, servers,
          isEncrypted: true))
      if let server = servers.startNchan(in: folder.appending("nchan-\(round)")) {
        nchan.append(try growth(of: server, upTo: 10_000, servers))
      }
    }
    return [
      ResultRow("\(name), plain", Spread(plain), unit: "KiB", goal: .atMost(20)),
      nchan.isEmpty ? nil : ResultRow("... nchan", Spread(nchan), unit: "KiB", goal: .none),
      ResultRow("\(name), TLS", Spread(encrypted), unit: "KiB", goal: .atMost(64)),
    ].compactMap { $0 }
  }

  /// The growth from 1,000 subscribers on, in KiB each.
  private static func growth(
    of server: Servers.Started, upTo count: Int, _ servers: Servers, isEncrypted: Bool = false
  ) throws -> Double {
    let subscribers = try LoadProcess(servers.load, server, isEncrypted: isEncrypted)
    try subscribers.open(1_000)
    let before = try server.process.residentByteCount()
    try subscribers.open(count)
    let after = try withExtendedLifetime(subscribers) { try server.process.residentByteCount() }
    return Double(after - before) / 1024 / Double(count - 1_000)
  }
}
