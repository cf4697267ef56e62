import Foundation
import Glibc
import TestSupport
import Testing

@Suite struct GrantCommandTests {
  private let server: ServerHome
  private let key: String

  init() throws {
    server = try ServerHome()
    key = try server.file("key", "client's auth key\n")
  }

  @Test func `a grant is listed until it is removed or ends`() throws {
    let command = ["grant", "shop", "--channel", "orders", "--auth-key-file", key, "--read"]
    let added = try server.run(command + ["--write", "--ttl", "60", "--json"])
    let grants = try server.grants()
    let report = try #require(added.expect(0).objects.first?["grants"] as? [[String: Any]])
    #expect(NSArray(array: report) == NSArray(array: grants))
    let grant = try #require(grants.first)
    let id = try #require(grant["grant"] as? String)
    #expect(grant["scope"] as? [String: String] == ["kind": "channel", "name": "orders"])
    #expect((grant["holder"] as? [String: String])?["kind"] == "authKey")
    #expect(grant["rights"] as? [String] == ["read", "write"])
    func date(_ name: String) throws -> Date {
      try Date(#require(grant[name] as? String), strategy: .iso8601)
    }
    #expect(try date("until").timeIntervalSince(date("granted")) == 3600)
    #expect(try server.run("grant", "list", "shop").lines.last?.hasPrefix(id) == true)

    // Another grant for the same holder and name takes its place.
    try server.run(command).expect(0, prints: "\(id)  auth key ", "channel 'orders'  read    -\n")
    #expect(try server.grants().count == 1)
    try server.run("grant", "remove", "shop", id.uppercased()).expect(0)
    #expect(try server.grants().isEmpty)
    try server.run("grant", "remove", "shop", id).expect(
      66, says: "no grant '\(id)'", "hint: datavaultd grant list")
  }

  @Test(arguments: [
    ("--channel a --channel a.*", ["channel 'a'", "channel 'a.*'"]),
    ("--group : --group g", ["all groups", "group 'g'"]),
    ("--channel a --group g", ["channel 'a'", "group 'g'"]),
    ("--channel a --consumer c", ["consumer 'c' of channel 'a'"]),
    ("--whole-application", ["the application"]),
  ])
  func `a grant is for everyone on each name that is given`(
    options: String, scopes: [String]
  ) throws {
    let added = try server.run(
      ["grant", "add", "shop", "--lease"] + options.split(separator: " ").map(String.init)
    ).expect(0)
    let rows = added.lines.dropFirst().map { $0.dropFirst(18) }
    let width = scopes.map(\.count).max() ?? 0
    #expect(
      rows.map(String.init)
        == scopes.map {
          "everyone  \($0.padding(toLength: width, withPad: " ", startingAt: 0))  lease   -"
        })
  }

  @Test func `file, descriptor and terminal give the same auth key, which nothing shows`() throws {
    let command = ["grant", "shop", "--channel", "orders", "--read"]
    let byFile = try server.run(command + ["--auth-key-file", key]).expect(0)
    let byDescriptor = try server.run(
      command + ["--auth-key-fd", "3"], descriptors: [3: Array("client's auth key".utf8)]
    ).expect(0)
    let user = try TerminalUser()
    let child = try Child(
      command + ["--auth-key-prompt", "--home", server.home.path] + server.home.keySource,
      of: Program.datavaultd,
      descriptors: [
        0: .terminal(user.terminal), 1: .writing(server.home.folder.path("output")),
      ])
    try user.answer("Auth key of application shop: ", with: "client's auth key")
    try user.answer("The same again: ", with: "client's auth key")
    #expect(child.wait() == 0)
    let id = try #require(byFile.lines.last?.prefix(16))
    let byTerminal = server.home.folder.contents(of: "output") ?? ""
    #expect(byDescriptor.lines.last?.prefix(16) == id && byTerminal.contains(id))
    #expect(try server.grants("--auth-key-file", key).count == 1)
    let other = try server.file("other", "another")
    #expect(try server.grants("--auth-key-file", other).isEmpty)
    user.readOutput()
    let shown = byFile.text + byFile.errors + byTerminal + user.seen
    #expect(!shown.contains("client's"))
    for bytes in try server.home.contents().values {
      #expect(bytes.range(of: Data("client's auth key".utf8)) == nil)
    }
  }

  @Test func `an auth key that no grant can reach is refused without showing it`() throws {
    let token = try server.token("token", "shop", "--channel", "c", "--read", "--ttl", "1")
    let long = try server.file("long", String(repeating: "k", count: 513))
    let loose = try server.file("loose", "client's auth key")
    #expect(chmod(loose, 0o644) == 0)
    let empty = try server.file("empty", "\n")
    let command = ["grant", "shop", "--channel", "c", "--read", "--auth-key-file"]
    let refusals: [(String, Int32, String)] = [
      (token, 65, "is a token"), (long, 65, "513 bytes"), (loose, 77, "chmod 600"),
      (empty, 77, "is empty"), (server.home.folder.path("absent"), 77, "cannot be read"),
    ]
    for (path, status, words) in refusals {
      let refused = try server.run(command + [path]).expect(status, of: path, says: words)
      let secret = server.home.folder.contents(of: String(path.split(separator: "/").last ?? ""))
      if let secret, secret.count > 1 { #expect(!refused.errors.contains(secret)) }
    }
    try server.run("grant", "shop", "--channel", "c", "--read", "--auth-key-prompt")
      .expect(77, says: "application 'shop' needs an auth key", "hint: give --auth-key-file")
    #expect(try server.grants().isEmpty)
  }

  @Test(arguments: [
    ("--channel c", "give at least one of --read"),
    ("--read", "give at least one of --channel"),
    ("--channel c/d --read", "has a '/'"),
    ("--channel c --group g --consumer n --read", "--consumer needs exactly one --channel"),
    ("--channel c --read --ttl 525601", "use 1 to 525600"),
    ("--channel c --read --ttl -1", "ttl"),
    ("--channel c --read --read", "--read is given twice"),
    ("--channel c --read --auth-key-fd 3 --auth-key-prompt", "give only one of --auth-key-file"),
  ])
  func `a grant that makes no sense is refused`(options: String, words: String) throws {
    try server.run(["grant", "shop"] + options.split(separator: " ").map(String.init))
      .expect(64, says: words)
  }

  @Test func `two secrets from one descriptor are refused`() throws {
    let options = ["--channel", "c", "--read", "--auth-key-fd", "3", "--password-fd", "3"]
    try server.home.server(["grant", "shop"] + options)
      .expect(64, says: "each secret needs its own")
  }

  @Test func `a mistyped command of grant is no application`() throws {
    try server.run("grant", "lst", "shop").expect(
      64, says: "unknown command 'lst'", "did you mean 'list'")
    try server.run("grant", "remove", "shop", "4711").expect(64, says: "help grant remove")
  }
}
