import Foundation
import Glibc
import TestSupport
import Testing

/// A daemon whose vault is locked, or is not opened by the credential.
@Suite struct LockTests {
  @Test(.enabled(if: Sessions.areAvailable, "the kernel refuses its keyring to this process"))
  func `a daemon with a locked vault reports it, and works from the unlock to the lock`() throws {
    let spool = try Spool.secured()
    defer { _ = try? spool.datavault("lock", "messaging") }
    let daemon = try Daemon(spool)
    try daemon.wait(for: "READY=1")
    let client = try Client(spool.socket)
    #expect(client.ask("a early") == "no a locked")

    try spool.unlock()
    try daemon.wait(for: "STATUS=delivering")
    #expect(client.ask("a early")?.hasPrefix("ok a ") == true)
    try spool.waitForLines(daemon) { $0 == ["a 1 early"] }

    #expect(try spool.datavault("lock", "messaging").status == 0)
    try daemon.wait(for: "STATUS=locked")
    // The engine has stopped. The vault is locked a moment later.
    var answer: String?
    try daemon.wait {
      answer = client.ask("b late")
      return answer != "no b starting"
    }
    #expect(answer == "no b locked")

    try spool.unlock()
    try daemon.wait(for: "STATUS=delivering")
    #expect(client.ask("b late")?.hasPrefix("ok b ") == true)
    try spool.waitForLines(daemon) { $0 == ["a 1 early", "b 1 late"] }
    #expect(daemon.stop() == 0)
  }

  @Test(.enabled(if: Sessions.areAvailable, "the kernel refuses its keyring to this process"))
  func `a daemon that waits for the unlock stops on SIGTERM`() throws {
    let spool = try Spool.secured()
    let daemon = try Daemon(spool)
    try daemon.wait(for: "READY=1")
    #expect(daemon.stop() == 0)
  }

  @Test func `a wrong password ends the daemon with 77 and a message`() throws {
    let spool = try Spool.secured()
    let daemon = try Daemon(spool, credentials: spool.credentials("wrong horse battery"))
    #expect(daemon.waitForEnd() == 77)
    let message = "spoold: password or salt of vault 'messaging' is wrong"
    #expect(daemon.errors.contains(message), "\(daemon.errors)")
    #expect(!daemon.errors.contains("horse"))
    #expect(!FileManager.default.fileExists(atPath: spool.socket))
  }

  @Test func `a home without a vault ends the daemon with 66, and no vault is created`() throws {
    let spool = try Spool.secured()
    try FileManager.default.removeItem(atPath: spool.home + "/vaults/messaging.vault")
    let daemon = try Daemon(spool, credentials: spool.credentials(Spool.password))
    #expect(daemon.waitForEnd() == 66, "\(daemon.errors)")
    #expect(!FileManager.default.fileExists(atPath: spool.home + "/vaults/messaging.vault"))
  }

  @Test func `a daemon whose engine cannot start ends with the reason`() throws {
    let spool = try Spool.unsecured()
    try FileManager.default.removeItem(atPath: spool.home + "/messaging.db")
    let daemon = try Daemon(spool)
    #expect(daemon.waitForEnd() == 66)
    #expect(daemon.errors.contains("spoold: "), "\(daemon.errors)")
    #expect(!FileManager.default.fileExists(atPath: spool.socket))
  }

  @Test func `a second daemon does not take the socket of the first`() throws {
    let spool = try Spool.unsecured()
    let first = try Daemon(spool).whenDelivering()
    let second = try Daemon(spool)
    #expect(second.waitForEnd() == 75)
    #expect(second.errors.contains("another daemon listens on"))
    #expect(try Client(spool.socket).ask("a b")?.hasPrefix("ok a ") == true)
    #expect(first.stop() == 0)
  }
}

/// Whether this machine's kernel supports sessions.
///
/// Checked once.
enum Sessions {
  static let areAvailable: Bool = {
    guard let spool = try? Spool.secured() else { return false }
    defer { _ = try? spool.datavault("lock", "messaging") }
    return (try? spool.unlock(for: "5s")) != nil
  }()
}
