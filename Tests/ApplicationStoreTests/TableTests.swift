import AccessControl
@testable import ApplicationStore
import DataVault
import GRDB
import MessagingQueue
import TestSupport
import Testing

/// The tables as such: their versions, their page, and how changes reach other processes.
@Suite struct TableTests {
  let fixture: StoreFixture

  init() async throws { fixture = try await StoreFixture() }

  @Test func `tables of a newer version are refused, at the open and in every later call`()
    async throws
  {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    let directory = try await ApplicationDirectory.load(store)
    try await fixture.execute("UPDATE application_state SET version = 4")
    #expect(await code { _ = try await fixture.neighbour() } == .newerVersion)
    #expect(await code { _ = try await store.applications() } == .newerVersion)
    #expect(await code { try await store.setOpen(true, of: shop) } == .newerVersion)
    #expect(await code { _ = try await directory.refresh() } == .newerVersion)
  }

  @Test(arguments: ["application", "Application_Change", "Application_User", "Application_Webhook"])
  func `a table of another program with one of the names is left alone`(
    name: String
  ) async throws {
    try await fixture.execute("CREATE TABLE \(name) (a)")
    #expect(await code { _ = try await fixture.store() } == .foreignTable)
    #expect(try await fixture.vault.itemNames().isEmpty)
  }

  @Test func `a lost state row is damage`() async throws {
    _ = try await fixture.store()
    try await fixture.execute("DELETE FROM application_state")
    #expect(await code { _ = try await fixture.neighbour() } == .damaged)
  }

  @Test func `a change counts as one commit of the engine, and notifies after it`() async throws {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    let notifier = fixture.engine.notifier
    let (seen, before) = (notifier.generation, try await commitNumber())
    try await store.put((1...3).map { grant(.read, on: .channel(channel("\($0)")), of: shop) })
    #expect(notifier.generation > seen)
    #expect(try await commitNumber() == before + 1)
    // Nothing to tell.
    try await store.removeGroup(group("g"), of: shop)
    #expect(try await commitNumber() == before + 1)
  }

  private func commitNumber() async throws -> Int {
    try await fixture.number("SELECT commit_number FROM engine") ?? 0
  }

  @Test func `the newest changes are kept, without gaps`() async throws {
    let store = try await fixture.store { $0.changeCount = 4 }
    let shop = try await store.addApplication("shop").id
    for _ in 0..<3 {
      try await store.put((1...2).map { grant(.read, on: .channel(channel("\($0)")), of: shop) })
    }
    #expect(try await fixture.number("SELECT min(generation) FROM application_change") == 4)
    #expect(try await fixture.number("SELECT max(generation) FROM application_change") == 7)
  }

  @Test func `the page lists each column of each table with its type, and each index`()
    async throws
  {
    _ = try await fixture.store()
    let page = try Repository.text("docs/reference/application-tables.md")
    var table = ""
    var listed: [String] = []
    for line in page.split(separator: "\n") {
      if let heading = line.wholeMatch(of: /### `([a-z_]+)`.*/) {
        table = String(heading.1)
      } else if line.hasPrefix("#") {
        table = ""
      } else if !table.isEmpty, let row = line.wholeMatch(of: /\| `([a-z_]+)` \| ([^|]+) \|.*/) {
        let type = row.2.prefix { $0.isLetter }
        listed.append(
          "\(table).\(row.1) \(type == "flag" ? "INTEGER" : type)"
            + (row.2.contains(" or NULL") ? " or NULL" : ""))
      }
    }
    let (found, indexes) = try await fixture.engine.read { db in
      (
        try String.fetchAll(
          db,
          sql: """
            SELECT t.name || '.' || c.name || ' ' || c.type
              || iif(c."notnull" OR c.pk, '', ' or NULL')
            FROM pragma_table_list AS t JOIN pragma_table_info(t.name) AS c
            WHERE t.schema = 'main' AND t.name LIKE 'application%' AND t.strict
            """),
        try String.fetchAll(
          db,
          sql: """
            SELECT name FROM sqlite_schema
            WHERE type = 'index' AND tbl_name LIKE 'application%' AND sql IS NOT NULL
            """)
      )
    }
    #expect(listed.sorted() == found.sorted())
    #expect(indexes.count == 2 && indexes.allSatisfy { page.contains("`\($0)`") })
    #expect(
      page.hasPrefix(
        "# The tables of applications, version \(ApplicationTables.migrations.count)\n"))
  }
}
