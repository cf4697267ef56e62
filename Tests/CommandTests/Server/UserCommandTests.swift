import Foundation
import TestSupport
import Testing

@Suite struct UserCommandTests {
  private let server: ServerHome
  private let password: String

  init() throws {
    server = try ServerHome()
    password = try server.file("alice.password", "staple battery horse\n")
  }

  private func add(_ options: String...) throws -> Program {
    try server.run(
      ["user", "add", "shop", "alice", "--user-password-file", password] + options)
  }

  @Test func `a user is listed with roles until removed, and replaced only when that is said`()
    throws
  {
    let added = try add("--role", "staff", "--role", "buyers", "--json").expect(0)
    let users = try #require(added.objects.first?["users"] as? [[String: Any]])
    #expect(users.first?["user"] as? String == "alice")
    #expect(users.first?["roles"] as? [String] == ["buyers", "staff"])
    #expect(!String(describing: users).contains("battery"))
    try add().expect(73, says: "already has a user 'alice'", "--replace")
    try add("--replace").expect(0)
    #expect(try server.run("user", "list", "shop").lines.last?.hasPrefix("alice  -") == true)
    try server.run("user", "remove", "shop", "alice").expect(0)
    try server.run("user", "remove", "shop", "alice").expect(66, says: "no user 'alice'")
  }

  @Test func `a grant for a role or a user allows what explain then says`() throws {
    try add("--role", "staff").expect(0)
    try server.run("grant", "shop", "--channel", "a", "--role", "staff", "--read").expect(0)
    try server.run("grant", "shop", "--channel", "b", "--user", "alice", "--read").expect(0)
    try server.run("explain", "shop", "subscribe", "a", "--user", "alice").expect(
      0, prints: "for role 'staff' of this user")
    try server.run("explain", "shop", "subscribe", "b", "--user", "alice").expect(
      0, prints: "for this caller")
    try server.run("explain", "shop", "publish", "a", "--user", "alice").expect(78)
    try server.run("explain", "shop", "subscribe", "a", "--user", "bob").expect(
      78, prints: "no such user")
    try server.run("grant", "shop", "--channel", "b", "--user", "bob", "--read").expect(
      66, says: "no user 'bob'")
  }
}
