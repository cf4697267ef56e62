import SystemPackage

/// The time in which 10,000 subscribers get one message: those that wait, and those of a server that was killed.
enum WakingCost {
  static let name = "10,000 long polls"
  private static let subscriberCount = 10_000
  private static let killCount = 3

  static func measure(_ servers: Servers, folder: FilePath, rounds: Int) throws -> [ResultRow] {
    let application = try servers.makeApplication(in: folder.appending("home"))
    var server = try servers.start(application)
    let ours = try subscribers(of: server, servers)
    let nchan = try servers.startNchan(in: folder.appending("nchan")).map { server in
      (server: server, subscribers: try subscribers(of: server, servers))
    }
    var (waking, besides): ([Double], [Double]) = ([], [])
    for round in 0...rounds {
      // Each side is first in every other round, and the first round does not count.
      let before = round.isMultiple(of: 2) ? nil : try nchan?.subscribers.wake()
      let seconds = try ours.wake()
      let other = try before ?? nchan?.subscribers.wake()
      if round == 0 { continue }
      waking.append(seconds)
      if let other { besides.append(other) }
    }
    let returning = try (0..<killCount).map { _ in
      try Cost.of {
        server.process.kill()
        server = try servers.start(application, port: server.process.port)
        try ours.recover()
      }.wallSeconds
    }
    return [
      ResultRow(
        "\(name) woken by one message: the last answer", Spread(waking), unit: "s",
        goal: .atMost(1)),
      besides.isEmpty ? nil : ResultRow("... nchan", Spread(besides), unit: "s", goal: .none),
      ResultRow("... all back after kill -9", Spread(returning), unit: "s", goal: .atMost(30)),
    ].compactMap { $0 }
  }

  private static func subscribers(
    of server: Servers.Started, _ servers: Servers
  ) throws -> LoadProcess {
    let subscribers = try LoadProcess(servers.load, server)
    try subscribers.open(subscriberCount)
    return subscribers
  }
}
