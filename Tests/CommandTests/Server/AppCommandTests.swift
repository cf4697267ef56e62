import Foundation
import TestSupport
import Testing

@Suite struct AppCommandTests {
  @Test func `the first app add makes vault and queue, and prints the keys`() throws {
    let home = try TestHome.fresh()
    let added = try home.server(["app", "add", "shop", "--json"])
      .expect(0, says: "open with the publicly known password")
    let keys = try #require(added.objects.first as? [String: String])
    #expect(Set(keys.keys) == ["name", "id", "publishKey", "subscribeKey", "secretKey"])
    #expect(keys["name"] == "shop" && keys["id"] == "1001")
    #expect(keys["publishKey"]?.wholeMatch(of: /pub-c-[0-9a-f-]{36}/) != nil)
    #expect(keys["subscribeKey"]?.wholeMatch(of: /sub-c-[0-9a-f-]{36}/) != nil)
    #expect(keys["secretKey"]?.wholeMatch(of: /sec-c-[\w-]{43}/) != nil)
    #expect(FileManager.default.fileExists(atPath: home.database))
    try home.server(["app", "add", "stock", "--open"]).expect(
      0, prints: "application    stock (1002)\n", "\nsecret key     sec-c-")
    let records = try home.server(["app", "list"]).lines.dropFirst().map { $0.prefix(27) }
    #expect(records == ["shop         1001  closed  ", "stock        1002  open    "])
  }

  @Test func `a secret key is shown only on demand, and is in no file`() throws {
    let server = try ServerHome()
    let secret = try #require(server.keys["secretKey"])
    for arguments in [
      ["show", "shop"], ["show", "shop", "--json"], ["list"], ["list", "--json"],
    ] {
      let shown = try server.run(["app"] + arguments).expect(0)
      #expect(shown.text.contains("sub-c-") && !shown.text.contains("sec-c-"))
    }
    let shown = try #require(server.run("app", "show", "shop", "--secret", "--json").objects.first)
    #expect(shown["secretKey"] as? String == secret)
    try server.run("app", "show", "shop", "--secret").expect(
      0, prints: "secret key     \(secret)\n")
    for bytes in try server.home.contents().values {
      #expect(bytes.range(of: Data(secret.utf8)) == nil)
    }
  }

  @Test func `commands on a home without a vault end with 66 and make nothing`() throws {
    let home = try TestHome.fresh()
    for command in [
      "app list", "app show shop", "app set shop --open", "app remove shop", "grant list shop",
      "grant shop --channel c --read", "grant remove shop 0123456789abcdef",
      "token grant shop --channel c --read --ttl 1", "explain shop publish c",
    ] {
      try home.server(command.split(separator: " ").map(String.init))
        .expect(66, of: command, says: "vault 'messaging' not found", "hint: check --home")
    }
    // A password would open no vault that the command makes.
    try home.server(["app", "add", "shop", "--password-file", home.passwordFile]).expect(66)
    #expect(!FileManager.default.fileExists(atPath: home.path + "/vaults"))
  }

  @Test func `app set changes only what an option names`() throws {
    let server = try ServerHome()
    func settings() throws -> String {
      let shown = try #require(server.run("app", "show", "shop", "--json").objects.first)
      return try ["open", "retentionMinutes", "retentionBytes"]
        .map { "\(try #require(shown[$0]))" }.joined(separator: " ")
    }
    #expect(try settings() == "0 10080 1073741824")
    try server.run("app", "set", "shop", "--open").expect(0)
    #expect(try settings() == "1 10080 1073741824")
    try server.run("app", "set", "shop", "--retention-days", "30").expect(0)
    #expect(try settings() == "1 43200 1073741824")
    try server.run("app", "set", "shop", "--closed", "--retention-bytes", "1000").expect(0)
    #expect(try settings() == "0 43200 1000")
    for wrong in ["", "--open --closed", "--retention-days 0", "--open --retention-bytes 0"] {
      try server.run(["app", "set", "shop"] + wrong.split(separator: " ").map(String.init))
        .expect(64, of: wrong)
    }
    #expect(try settings() == "0 43200 1000")
  }

  @Test func `a removed application has left nothing to a new one of its name`() throws {
    let server = try ServerHome()
    try server.run("grant", "shop", "--channel", "c", "--read").expect(0)
    try server.run("app", "remove", "shop").expect(0)
    try server.run("app", "show", "shop").expect(66, says: "there is no application 'shop'")
    let added = try #require(server.run("app", "add", "shop", "--json").objects.first)
    #expect(added["id"] as? String == "1002")
    #expect(added["subscribeKey"] as? String != server.keys["subscribeKey"])
    #expect(try server.grants().isEmpty)
  }

  @Test func `names that are wrong, taken or unknown are told apart`() throws {
    let server = try ServerHome()
    for name in ["Shop", "a/b", "", String(repeating: "a", count: 33)] {
      try server.run("app", "add", name).expect(64, of: name, says: "hint: use 1 to 32 of a-z")
    }
    try server.run("app", "add", "shop").expect(73, says: "already an application 'shop'")
    for command in [
      "app show", "app set --open", "app remove", "grant list", "grant --channel c --read",
      "grant remove 0123456789abcdef", "token grant --channel c --read --ttl 1",
    ] {
      var words = command.split(separator: " ").map(String.init)
      words.insert("stock", at: words[0] == "grant" && words[1] == "--channel" ? 1 : 2)
      try server.run(words).expect(
        66, of: command, says: "there is no application 'stock'", "hint: datavaultd app list")
    }
  }

  @Test func `a secured home needs its password, and a demand for one refuses others`() throws {
    let home = try TestHome.secured()
    let added = ["app", "add", "shop", "--json"]
    try home.server(added).expect(77, says: "needs a password")
    try home.server(added + ["--password-file", home.wrongFile]).expect(77, says: "wrong")
    try home.server(
      added + ["--password-fd", "3"], descriptors: [3: Array(TestHome.password.utf8)]
    )
    .expect(0, prints: "\"name\":\"shop\"")
    try home.server(["app", "list", "--password-file", home.passwordFile])
      .expect(0, prints: "shop ")
    try TestHome.unsecured().server(["app", "list", "--require-secured"])
      .expect(78, says: "datavault secure")
  }

  @Test func `commands that remove ask at a terminal, and any other answer changes nothing`()
    throws
  {
    let server = try ServerHome()
    try server.run("grant", "shop", "--channel", "c", "--read").expect(0)
    let grant = try #require(server.grants().first?["grant"] as? String)
    let questions = [
      (["app", "remove", "shop"], "remove application 'shop' with its keys and grants"),
      (["grant", "remove", "shop", grant], "remove grant '\(grant)' of application 'shop'"),
    ]
    for (command, question) in questions {
      let user = try TerminalUser()
      let before = try server.home.contents()
      let child = try Child(
        command + ["--home", server.home.path] + server.home.keySource,
        of: Program.datavaultd,
        descriptors: [
          0: .terminal(user.terminal), 2: .writing(server.home.folder.path("errors")),
        ])
      user.press("n\n")
      #expect(child.wait() == 77)
      let errors = server.home.folder.contents(of: "errors") ?? ""
      #expect(errors.contains("\(question)? [y/N]"), "\(errors)")
      #expect(try server.home.contents() == before)
    }
  }
}
