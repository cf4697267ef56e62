import AccessControl
@testable import ApplicationStore
import DataVault
import Foundation
import GRDB
import MessagingQueue
import TestSupport
import Testing
import VaultCrypto

/// Users, roles and failed logins in the tables.
@Suite struct UserTests {
  let fixture: StoreFixture
  private let ana = name("ana")
  private let staff = name("staff")

  init() async throws { fixture = try await StoreFixture() }

  private func password(_ text: String) -> Password {
    Password(SecretBytes(copying: Array(text.utf8)))
  }

  @discardableResult
  private func add(
    _ user: String, to id: ApplicationID, of store: ApplicationStore, _ roles: Set<Name> = [],
    password text: String = "password", replaces: Bool = false
  ) async throws -> UserRecord {
    let verifier = try store.keys.realm.verifier(for: password(text), user: name(user), of: id)
    return try await store.put(
      user: name(user), verifier, roles: roles, of: id, replaces: replaces)
  }

  @Test func `tables of version 1 get the tables of all later ones, and keep what they have`()
    async throws
  {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    try await store.put([grant(.read, on: .channel(channel("c")), of: shop)])
    let schema = try await schema()
    try await fixture.execute(
      """
      DROP TABLE application_user; DROP TABLE application_user_role;
      DROP TABLE application_login_failure; DROP TABLE application_webhook;
      UPDATE application_state SET version = 1
      """)
    let migrated = try await fixture.neighbour()
    #expect(try await fixture.number("SELECT version FROM application_state") == 3)
    #expect(try await self.schema() == schema)
    #expect(try await migrated.grants(of: shop).count == 1)
    #expect(try await migrated.users(of: shop).isEmpty)
    try await add("ana", to: shop, of: migrated)
    #expect(try await migrated.users(of: shop).map(\.name) == [ana])
  }

  @Test func `a table of another program stops the step to version 2, and nothing is changed`()
    async throws
  {
    _ = try await fixture.store()
    try await fixture.execute(
      """
      DROP TABLE application_user_role; DROP TABLE application_login_failure;
      DROP TABLE application_webhook; UPDATE application_state SET version = 1
      """)
    #expect(await code { _ = try await fixture.neighbour() } == .foreignTable)
    #expect(try await fixture.number("SELECT version FROM application_state") == 1)
  }

  private func schema() async throws -> [String] {
    try await fixture.engine.read { db in
      try String.fetchAll(
        db,
        sql: "SELECT sql FROM sqlite_schema WHERE name LIKE 'application%' AND sql > '' ORDER BY 1"
      )
    }
  }

  @Test func `a user is stored with roles, and replaced only when that is said`() async throws {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    let added = try await add("ana", to: shop, of: store, [staff])
    #expect(added.created == start && added.roles == [staff])
    #expect(await code { try await add("ana", to: shop, of: store) } == .alreadyExists)
    fixture.now = minute(5)
    let replaced = try await add(
      "ana", to: shop, of: store, [name("admin")], password: "new password", replaces: true)
    #expect(replaced.created == start)
    #expect(try await store.users(of: shop) == [replaced])
    #expect(try await store.user(ana, of: shop) == replaced)
    #expect(await code { _ = try await store.user(name("bob"), of: shop) } == .unknownUser)
  }

  @Test func `a directory follows users and roles, and has nothing of a removed one`()
    async throws
  {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    let directory = try await ApplicationDirectory.load(store)
    #expect(!directory.hasUsers(shop))
    try await store.put([grant(.read, on: .channel(channel("c")), for: .role(staff), of: shop)])
    let neighbour = try await fixture.neighbour()
    try await add("ana", to: shop, of: neighbour, [staff])
    let changes = try await directory.refresh()
    #expect(changes.access.contains { $0.concerns(.user(ana), in: shop) })
    #expect(directory.hasUsers(shop))
    let resource = Resource(.channel(channel("c")), of: shop)
    func isAllowed() -> Bool {
      directory.decide(.user(ana), .subscribe, resource, at: start).isAllowed
    }
    #expect(isAllowed())
    // A load reads what a refresh has read.
    let loaded = try await ApplicationDirectory.load(store)
    #expect(loaded.decide(.user(ana), .subscribe, resource, at: start).isAllowed)
    #expect(loaded.verifier(of: ana, of: shop) == directory.verifier(of: ana, of: shop))
    let verifier = try #require(directory.verifier(of: ana, of: shop))
    #expect(try store.keys.realm.matches(password("password"), verifier, user: ana, of: shop))
    try await add("ana", to: shop, of: neighbour, [], replaces: true)
    _ = try await directory.refresh()
    #expect(!isAllowed())
    #expect(directory.verifier(of: ana, of: shop) != verifier)
    try await neighbour.removeUser(ana, of: shop)
    _ = try await directory.refresh()
    #expect(directory.verifier(of: ana, of: shop) == nil && !directory.hasUsers(shop))
    #expect(await code { try await neighbour.removeUser(ana, of: shop) } == .unknownUser)
  }

  @Test func `a removed user takes the grants, and the count of grants stays right`()
    async throws
  {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    try await add("ana", to: shop, of: store, [staff])
    try await store.put(
      [GrantHolder.user(ana), .role(staff), .everyone].map {
        grant(.read, on: .channel(channel("c")), for: $0, of: shop)
      })
    let directory = try await ApplicationDirectory.load(store)
    try await store.removeUser(ana, of: shop)
    _ = try await directory.refresh()
    #expect(Set(try await store.grants(of: shop).map(\.key.holder)) == [.role(staff), .everyone])
    #expect(directory.withIndex { $0.grants(of: shop).count } == 2)
    #expect(try await fixture.wrongCounts() == 0)
  }

  @Test func `users and roles are bounded, in an application and in all`() async throws {
    let store = try await fixture.store {
      $0.userCount = 2
      $0.totalUserCount = 3
      $0.roleCount = 1
    }
    let shop = try await store.addApplication("shop").id
    let bank = try await store.addApplication("bank").id
    try await add("a", to: shop, of: store)
    try await add("b", to: shop, of: store)
    #expect(await code { try await add("c", to: shop, of: store) } == .tooManyUsers)
    try await add("b", to: shop, of: store, replaces: true)
    try await add("a", to: bank, of: store)
    #expect(await code { try await add("b", to: bank, of: store) } == .tooManyUsers)
    #expect(
      await code { try await add("a", to: bank, of: store, [ana, staff], replaces: true) }
        == .tooManyUsers)
    #expect(try await store.users(of: shop).count == 2)
  }

  @Test func `an application takes its users and roles with it`() async throws {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    try await add("ana", to: shop, of: store, [staff])
    let directory = try await ApplicationDirectory.load(store)
    try await store.removeApplication(shop)
    _ = try await directory.refresh()
    #expect(try await fixture.number("SELECT count(*) FROM application_user") == 0)
    #expect(try await fixture.number("SELECT count(*) FROM application_user_role") == 0)
    #expect(!directory.hasUsers(shop))
  }

  @Test func `no table has a password, or the user of a failed login`() async throws {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    try await add("ana", to: shop, of: store, password: "a secret pass phrase")
    var ledger = LoginLedger()
    let attempt = try store.keys.realm.attempt(
      by: name("typed-password"), of: shop, from: "192.0.2.77")
    _ = ledger.begin(attempt, at: start)
    let (stored, removed) = ledger.takeUnsaved()
    try await store.saveLoginFailures(stored, removing: removed)
    for cell in try await fixture.cells() {
      for text in ["secret pass", "typed-password", "192.0.2.77"] {
        #expect(cell.firstRange(of: Data(text.utf8)) == nil)
      }
    }
  }

  @Test func `failed logins survive a restart, and go after an hour`() async throws {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    let attempt = try store.keys.realm.attempt(by: ana, of: shop, from: "192.0.2.1")
    var ledger = LoginLedger()
    for _ in 0..<3 {
      _ = ledger.begin(attempt, at: start)
      ledger.end(attempt, succeeded: false)
    }
    let (stored, removed) = ledger.takeUnsaved()
    let generation = try await fixture.number("SELECT max(generation) FROM application_change")
    try await store.saveLoginFailures(stored, removing: removed)
    #expect(
      try await fixture.number("SELECT max(generation) FROM application_change") == generation)
    let neighbour = try await fixture.neighbour()
    var next = LoginLedger(try await neighbour.loginFailures())
    #expect(
      try next.begin(
        neighbour.keys.realm.attempt(by: ana, of: shop, from: "192.0.2.1"), at: start)
        == .wait(seconds: 1))
    fixture.now = minute(61)
    try await neighbour.saveLoginFailures([], removing: [])
    #expect(try await neighbour.loginFailures().isEmpty)
  }
}
