import Foundation
import Glibc
import TestSupport
import Testing

/// Commands that fail, hang, or do not read their input.
@Suite struct CommandFailureTests {
  @Test func `a failed command runs again until it succeeds`() throws {
    let spool = try Spool.unsecured()
    let daemon = try Daemon(
      spool,
      command: ["/bin/sh", "-c", "[ $MESSAGE_ATTEMPT = 3 ] || exit 9; \(spool.appendingScript)"])
    try daemon.wait(for: "STATUS=delivering")
    #expect(try Client(spool.socket).ask("a text")?.hasPrefix("ok a ") == true)
    try spool.waitForLines(daemon) { $0 == ["a 3 text"] }
    #expect(daemon.stop() == 0)
    #expect(daemon.errors.ranges(of: "exited with 9").count == 2)
    #expect(!daemon.errors.contains("text"))
  }

  @Test(arguments: [
    (["false"], "exited with 1"),
    (["/nonexistent"], "/nonexistent: No such file or directory"),
    (["/bin/sh", "-c", "kill -15 $$"], "ended by signal 15"),
    // With the processes that it has started.
    (["/bin/sh", "-c", "sleep 10000 & wait"], "killed after 1.0 seconds"),
  ])
  func `a message whose command fails too often becomes a dead letter`(
    command: [String], reason: String
  ) throws {
    let spool = try Spool.unsecured()
    let daemon = try Daemon(spool, ["--attempts", "2", "--time-limit", "1"], command: command)
    try daemon.wait(for: "STATUS=delivering")
    #expect(try Client(spool.socket).ask("a text")?.hasPrefix("ok a ") == true)
    let letters = try eventually(daemon.errors) {
      let letters = try spool.datavault("queue", "dead-letters", "spool", "--json")
      if letters.text.contains("reason") { return letters }
      guard daemon.isRunning, letters.status == 0 else { throw DaemonEnded(errors: daemon.errors) }
      // An acknowledged message never becomes a dead letter.
      try #require(try spool.messageCount() == 1)
      return nil
    }
    #expect(letters.text.replacing("\\/", with: "/").contains(reason), "\(letters.text)")
    #expect(letters.text.contains(#""attempts":2"#), "\(letters.text)")
    #expect(daemon.stop() == 0)
  }

  @Test func `a process that a command leaves behind delays neither its worker nor a stop`() throws
  {
    let spool = try Spool.unsecured()
    let process = spool.folder.path("process")
    // In its own session, with the pipe open but unread. Its other descriptors are not the
    // daemon's.
    let script = """
      setsid -f sh -c 'echo $$ >>\(process); exec sleep 60' >/dev/null 2>&1
      echo "$MESSAGE_ID $MESSAGE_ATTEMPT" >>\(spool.delivered)
      """
    let daemon = try Daemon(
      spool, ["--time-limit", "2", "--workers", "1"], command: ["/bin/sh", "-c", script])
    try daemon.wait(for: "STATUS=delivering")
    let client = try Client(spool.socket)
    client.send(Array("a ".utf8) + [UInt8](repeating: 0x78, count: 1 << 20) + [0x0A])
    #expect(client.answer()?.hasPrefix("ok a ") == true)
    try spool.waitForLines(daemon) { $0.count == 1 }
    #expect(client.ask("b text")?.hasPrefix("ok b ") == true)
    try spool.waitForLines(daemon) { $0.count == 2 }
    daemon.send(SIGTERM)
    #expect(daemon.waitForEnd() == 0)
    #expect(spool.deliveredLines() == ["a 1", "b 1"])
    // A daemon that waits for the left process would reach this line only after the process has
    // ended.
    for number in try String(contentsOfFile: process, encoding: .utf8).split(separator: "\n") {
      // Empty after the process has ended, reaped or not.
      let words = try String(contentsOfFile: "/proc/\(number)/cmdline", encoding: .utf8)
      #expect(words.contains("sleep"))
      kill(try #require(pid_t(number)), SIGKILL)
    }
  }

  @Test func `a command can ignore its input, and does not get the daemon's variables`() throws {
    let spool = try Spool.secured()
    let daemon = try Daemon(
      spool, command: ["/bin/sh", "-c", "env | cut -d= -f1 >>\(spool.delivered)"],
      credentials: spool.credentials(Spool.password))
    try daemon.wait(for: "STATUS=delivering")
    let client = try Client(spool.socket)
    client.send(Array("a ".utf8) + [UInt8](repeating: 0x78, count: 1 << 20) + [0x0A])
    #expect(client.answer()?.hasPrefix("ok a ") == true)
    try spool.waitForLines(daemon) { $0.contains("MESSAGE_TIMETOKEN") }
    #expect(daemon.stop() == 0)
    let names = Set(spool.deliveredLines())
    #expect(names.isSuperset(of: ["PATH", "MESSAGE_ID", "MESSAGE_ATTEMPT"]))
    #expect(names.isDisjoint(with: ["NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY"]))
    #expect(!daemon.errors.contains("failed") && !daemon.errors.contains("exited"))
  }
}
