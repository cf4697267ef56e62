import Foundation
import TestSupport
import Testing

/// What the shells' completion scripts get from the program: `---completion COMMAND -- ARGUMENT INDEX CURSOR WORD...`.
struct CompletionTests {
  let home: TestHome

  init() throws { home = try TestHome.secured() }

  /// Asks for the last of the words after `datavault`, which is still empty.
  private func offered(
    _ argument: String, _ words: String..., in path: String? = nil
  ) throws -> Program {
    let path = path ?? home.path
    // The commands of the line, such as "queue publish".
    let command = words.prefix(words.first == "queue" ? 2 : 1)
    let line = ["datavault"] + words + [""]
    return try Tool.run(
      ["---completion"] + command + ["--", argument, "\(line.count - 1)", "0"] + line
        + ["--home", path],
      environment: ["SAP_SHELL": "bash"])
  }

  private func files() throws -> [String] {
    try #require(FileManager.default.enumerator(atPath: home.path)).allObjects
      .compactMap { $0 as? String }.sorted()
  }

  @Test func `vaults are offered without a secret`() throws {
    try home.create("app")
    #expect(try offered("positional@0", "get").expect(0).lines == ["app", "messaging"])
    #expect(try offered("positional@0", "lock").expect(0).lines == ["app", "messaging"])
  }

  @Test func `nothing is offered, asked or reported for a locked vault`() throws {
    for answer in [
      try offered("positional@1", "get", "messaging"),
      try offered("positional@0", "queue", "publish"),
    ] {
      #expect(answer.expect(0).lines.isEmpty)
      #expect(answer.errors.isEmpty)
    }
  }

  @Test func `nothing is reported where the home, the vault or the command is wrong`() throws {
    for answer in [
      try offered("positional@0", "get", in: home.folder.path("missing")),
      try offered("positional@0", "get", in: ""),
      try offered("positional@1", "get", "no such vault"),
      try offered("positional@0", "unknown"),
    ] {
      #expect(answer.lines.isEmpty)
      #expect(answer.errors.isEmpty)
    }
    #expect(!FileManager.default.fileExists(atPath: home.folder.path("missing")))
  }

  @Test(.enabled(if: Keyrings.isAvailable, Keyrings.skipReason))
  func `items and channels are offered during a session, and no file is changed or made`() throws {
    try home.unlocked("set", "messaging", "token", input: "t0ken").expect(0)
    try home.unlocked("unlock", "messaging").expect(0)
    defer { _ = try? home.run("lock", "messaging") }
    let (names, contents) = (try files(), try home.contents())
    #expect(try offered("positional@1", "get", "messaging").expect(0).lines == ["token"])
    #expect(try offered("positional@0", "queue", "publish").expect(0).lines == ["c"])
    #expect(try offered("--channel", "queue", "export", "--channel").expect(0).lines == ["c"])
    #expect(try files() == names)
    #expect(try home.contents() == contents)
  }

  @Test(.enabled(if: Keyrings.isAvailable, Keyrings.skipReason))
  func `channels are offered while another process has the queue open`() throws {
    try home.unlocked("unlock", "messaging").expect(0)
    defer { _ = try? home.run("lock", "messaging") }
    let output = home.folder.path("output")
    let follower = try home.start(
      "queue", "receive", "c", "--follow", descriptors: [1: .writing(output)])
    defer {
      kill(follower.id, SIGKILL)
      _ = follower.wait()
    }
    try eventually { FileManager.default.contents(atPath: output)?.isEmpty == false }
    let names = try files()
    #expect(try offered("positional@0", "queue", "publish").expect(0).lines == ["c"])
    #expect(try files() == names)
  }

  @Test(.enabled(if: Keyrings.isAvailable, Keyrings.skipReason))
  func `a name that a shell would expand is not offered`() throws {
    for channel in ["$(touch pwned)", "`id`", "a b", "x;y", "*", "orders/eu"] {
      try home.queue("publish", channel, input: "m\n").expect(0)
    }
    try home.unlocked("unlock", "messaging").expect(0)
    defer { _ = try? home.run("lock", "messaging") }
    #expect(try offered("positional@0", "queue", "publish").expect(0).lines == ["c", "orders/eu"])
  }

  @Test func `every vault, item, channel and file of the command line is completed`() throws {
    func arguments(of command: [String: Any]) -> [[String: Any]] {
      let own = command["arguments"] as? [[String: Any]] ?? []
      return own + (command["subcommands"] as? [[String: Any]] ?? []).flatMap(arguments)
    }
    let help = try Tool.run(["--experimental-dump-help"]).objectAtOnce
    let root = try #require(help["command"] as? [String: Any])
    let missing = arguments(of: root).filter {
      // `import --as` names a new vault.
      ($0["preferredName"] as? [String: String])?["name"] != "as"
        && ["vault", "channel", "file", "dir"].contains($0["valueName"] as? String ?? "")
        && $0["completionKind"] == nil
    }
    #expect(missing.isEmpty)
    #expect(arguments(of: root).count > 100)
  }

  /// `make deb-test` has those of the other shells.
  @Test func `bash reads its completion script`() throws {
    let script = try Tool.run(["--generate-completion-script", "bash"]).expect(
      0, prints: "datavault")
    #expect(try Program.run("/bin/bash", ["-n"], input: script.output).status == 0)
  }
}

extension Program {
  /// The JSON object that is the whole output.
  fileprivate var objectAtOnce: [String: Any] {
    get throws {
      try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }
  }
}
