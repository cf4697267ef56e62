import BrokerCluster
import Foundation
import Glibc
import TestSupport
import Testing

/// A home with the closed application `shop`, and the commands of `datavaultd` on it.
struct ServerHome {
  let home: TestHome
  /// What `app add` printed.
  let keys: [String: String]

  /// Makes the home; a key file opens its vault.
  init() throws {
    let original = try Self.original.get()
    home = try TestHome.copy(of: original.home)
    keys = original.keys
  }

  private init(_ home: TestHome) throws {
    self.home = home
    let added = try home.server(["app", "add", "shop", "--json"] + home.keySource).expect(0)
    keys = try #require(added.objects.first as? [String: String])
  }

  private static let original = Result { try ServerHome(TestHome.keyed()) }

  /// Runs `datavaultd` on the home.
  func run(_ arguments: String...) throws -> Program { try run(arguments) }

  func run(_ arguments: [String], descriptors: [Int32: [UInt8]] = [:]) throws -> Program {
    try home.server(arguments + home.keySource, descriptors: descriptors)
  }

  /// Writes a file with a credential of a client, and returns its path.
  func file(_ name: String, _ text: String) throws -> String {
    try home.folder.file(name, Array(text.utf8))
  }

  /// Makes a token, and returns the path of its file.
  func token(_ name: String, _ arguments: String...) throws -> String {
    let made = try run(["token", "grant"] + arguments).expect(0)
    return try file(name, made.text)
  }

  /// The grants of an application as `grant list --json` shows them.
  func grants(_ options: String...) throws -> [[String: Any]] {
    let report = try run(["grant", "list", "shop", "--json"] + options).expect(0).objects.first
    return try #require(report?["grants"] as? [[String: Any]])
  }

  /// Makes the home the first member of a cluster with one broker.
  func becomeMember() throws -> BrokerCluster {
    var options = BrokerCluster.Options()
    options.count = 1
    let brokers = try BrokerCluster(options)
    let provision = ["cluster", "provision", "--replicas", "1", "--without-login"]
    try eventually("the broker makes the stream") {
      try run(provision + ["--broker", brokers.addresses[0]]).status == 0
    }
    return brokers
  }

  /// Runs `datavaultd serve` on the home while `body` runs.
  func serving(_ body: (PlainClient) throws -> Void) throws {
    let child = try Child(
      ["serve", "--listen", "127.0.0.1:0", "--home", home.path] + home.keySource,
      of: Program.datavaultd,
      descriptors: [
        1: .writing(home.folder.path("listening")), 2: .writing(home.folder.path("serving")),
      ])
    defer {
      kill(child.id, SIGTERM)
      #expect(child.wait() == 0)
    }
    var port: UInt16?
    try eventually(home.folder.contents(of: "serving") ?? "") {
      let line = home.folder.contents(of: "listening") ?? ""
      port = line.firstMatch(of: /listening on http:\/\/127\.0\.0\.1:(\d+)\n/)
        .flatMap { UInt16($0.output.1) }
      return port != nil || child.hasEnded
    }
    try body(PlainClient(port: #require(port)))
  }
}

extension TestHome {
  /// Runs `datavaultd` on this home.
  func server(_ arguments: [String], descriptors: [Int32: [UInt8]] = [:]) throws -> Program {
    try Tool.run(
      arguments + ["--home", path], of: Program.datavaultd, descriptors: descriptors)
  }
}

/// Asks a server on loopback, one connection for each request.
struct PlainClient {
  let port: UInt16

  /// The status of the answer; nil if there is none.
  func status(_ target: String) throws -> Int? {
    let connection = try LoopbackSocket(connectedTo: port)
    let request = "GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    try #require(write(connection.descriptor, request, request.utf8.count) == request.utf8.count)
    var answer = [UInt8](repeating: 0, count: 64)
    let count = max(read(connection.descriptor, &answer, answer.count), 0)
    let line = String(decoding: answer[..<count], as: UTF8.self).split(separator: " ")
    return line.dropFirst().first.flatMap { Int($0) }
  }
}
