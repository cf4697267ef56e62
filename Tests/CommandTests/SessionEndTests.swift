import Foundation
import Glibc
import TestSupport
import Testing

/// Programs whose vault was opened through a session that ends.
@Suite(.enabled(if: Keyrings.isAvailable, Keyrings.skipReason))
struct SessionEndTests {
  private func unlocked(for time: String) throws -> TestHome {
    let home = try TestHome.secured()
    #expect(try home.unlocked("unlock", "messaging", "--for", time).status == 0)
    return home
  }

  /// A publisher whose message "one" is committed.
  private func publishedOne(_ home: TestHome, _ arguments: [String] = []) throws -> Publisher {
    let publisher = try Publisher(home, ["live"] + arguments)
    publisher.publish("one")
    try publisher.report(1)
    return publisher
  }

  private func received(_ home: TestHome) throws -> String {
    try home.queue("receive", "live").text
  }

  @Test func `lock stops a running engine that uses the session`() throws {
    let home = try unlocked(for: "600s")
    let publisher = try publishedOne(home)
    #expect(publisher.hasDatabaseOpen)
    #expect(try home.run("lock", "messaging").status == 0)
    try eventually("the engine stops") { !publisher.hasDatabaseOpen }
    publisher.publish("two")
    #expect(publisher.finish() == 77)
    #expect(publisher.errors.contains("the messaging vault was locked"))
    #expect(try received(home) == "one\n")
  }

  @Test func `a running engine continues after its session expires`() throws {
    let home = try unlocked(for: "600s")
    let publisher = try publishedOne(home)
    #expect(try home.unlocked("unlock", "messaging", "--for", "2s").status == 0)
    try eventually { try home.run("items", "messaging").status == 77 }
    // Nothing shows that the publisher has noticed the end of its session.
    usleep(2_000_000)
    publisher.publish("two")
    #expect(publisher.finish() == 0)
    #expect(publisher.errors.contains("without a rollback anchor"), "\(publisher.errors)")
    #expect(try received(home) == "one\ntwo\n")
  }

  @Test func `lock does not affect an engine that has the password`() throws {
    let home = try unlocked(for: "600s")
    let publisher = try publishedOne(home, ["--password-file", home.passwordFile])
    let other = try Publisher(home, ["other"])
    other.publish("one")
    try other.report(1)
    #expect(other.hasDatabaseOpen)
    #expect(try home.run("lock", "messaging").status == 0)
    try eventually("the engine with the session stops") { !other.hasDatabaseOpen }
    publisher.publish("two")
    #expect(publisher.finish() == 0)
    #expect(try received(home) == "one\ntwo\n")
  }
}
