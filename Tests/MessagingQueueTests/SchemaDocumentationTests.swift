import GRDB
import MessagingQueue
import QueueFixture
import TestSupport
import Testing

/// `docs/reference/message-database-format.md` lists all tables and their columns, and nothing else.
@Suite struct SchemaDocumentationTests {
  let engine: PlainEngine
  let page: String

  init() throws {
    engine = try PlainEngine()
    page = try Repository.text("docs/reference/message-database-format.md")
  }

  /// "TABLE.COLUMN TYPE", with "or NULL" if the column allows it, from the sections of the page.
  private var listedColumns: [String] {
    var table = ""
    var columns: [String] = []
    for line in page.split(separator: "\n") {
      if let heading = line.wholeMatch(of: /### `([a-z_]+)`.*/) {
        table = String(heading.1)
      } else if line.hasPrefix("#") {
        table = ""
      } else if !table.isEmpty, let row = line.wholeMatch(of: /\| `([a-z_]+)` \| ([^|]+) \|.*/) {
        let type = row.2.prefix { $0.isLetter }
        columns.append(
          "\(table).\(row.1) \(type == "flag" ? "INTEGER" : type)"
            + (row.2.contains(" or NULL") ? " or NULL" : ""))
      }
    }
    return columns
  }

  @Test func `the page lists each column of each table with its type, and no other`() throws {
    let found = try engine.pool.read { db in
      try String.fetchAll(
        db,
        sql: """
          SELECT t.name || '.' || c.name || ' ' || c.type
            || iif(c."notnull" OR c.pk, '', ' or NULL')
          FROM pragma_table_list AS t JOIN pragma_table_info(t.name) AS c
          WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite_%'
          """)
    }
    let listed = listedColumns
    #expect(Set(listed).subtracting(found) == [], "listed, but missing in the schema")
    #expect(Set(found).subtracting(listed) == [], "in the schema, but not listed")
    #expect(listed.count == found.count)
  }

  @Test func `the page names each index`() throws {
    let indexes = try engine.pool.read { db in
      try String.fetchAll(
        db, sql: "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    }
    #expect(indexes.filter { !page.contains("`\($0)`") } == [])
  }

  @Test func `the page states the schema's version and the application id`() throws {
    let version = try #require(try engine.number("PRAGMA user_version"))
    let applicationID = try #require(try engine.number("PRAGMA application_id"))
    #expect(page.hasPrefix("# The message database, schema version \(version)\n"))
    #expect(page.contains("| `application_id` | \(applicationID) "))
  }

  @Test func `headers, failures and tokens are encoded as the page shows`() throws {
    _ = try engine.database.publish([
      Message(channel: .orders, payload: [1], headers: ["type": "text/plain"])
    ])
    let headers = try #require(try engine.text("SELECT lower(hex(headers)) FROM message"))
    let example = try #require(page.firstMatch(of: /\n(0004 [0-9a-f ]+)\n/))
    #expect(headers == example.1.filter { $0 != " " })

    let token = try #require(try engine.database.receive(1, from: .orders).first).token
    let row = "timetoken || '-' || consumer_id || '-' || lower(hex(lease))"
    #expect(try engine.text("SELECT \(row) FROM delivery") == "\(token)")

    try engine.database.release([token], reason: "a/b")
    let failures = try #require(try engine.text("SELECT failures FROM delivery"))
    #expect(
      failures.wholeMatch(of: /\[\{"attempt":1,"reason":"a\\\/b","time":[0-9]+\}\]/) != nil)
  }
}
