internal import SealedVFS

/// The table for rows whose own table is unknown or refuses them; the first such row creates it.
///
/// Its columns are those of the sqlite3 shell's `.recover`.
struct LostAndFound {
  private(set) var name: String?
  private(set) var rowCount = 0
  private var columnCount = 0
  private var insertion: RowInsertion?

  private static let columnLimit = 1990

  mutating func add(
    root: UInt32, page: UInt32, rowID: Int64?, _ values: [StoredValue], to database: NewDatabase,
    _ encoding: TextEncoding
  ) throws(SealedDatabaseError) {
    let values = values.prefix(Self.columnLimit)
    try makeRoom(values.count, in: database)
    guard let name else { return }
    if insertion == nil {
      let places = (0..<columnCount + 4).map { "?\($0 + 1)" }.joined(separator: ", ")
      insertion = try database.insertion(
        "INSERT INTO \(name.quotedName) VALUES (\(places))", encoding)
    }
    let row: [StoredValue] =
      [
        .integer(Int64(root)), .integer(Int64(page)), .integer(Int64(values.count)),
        rowID.map { .integer($0) } ?? .null,
      ] + values + Array(repeating: .null, count: columnCount - values.count)
    if try insertion?.insert(row) == true { rowCount += 1 }
  }

  private mutating func makeRoom(_ count: Int, in database: NewDatabase) throws(SealedDatabaseError)
  {
    if name == nil {
      let taken = Set(
        try database.rows("SELECT lower(name) FROM sqlite_schema").compactMap { $0[0] })
      let free = (["lost_and_found"] + (0..<1000).map { "lost_and_found_\($0)" })
        .first { !taken.contains($0) }
      guard let free else { return }
      try database.run(
        "CREATE TABLE \(free) (rootpgno INTEGER, pgno INTEGER, nfield INTEGER, id INTEGER)")
      name = free
    }
    guard let name, count > columnCount else { return }
    insertion = nil
    for index in columnCount..<count {
      try database.run("ALTER TABLE \(name) ADD COLUMN c\(index)")
    }
    columnCount = count
  }
}
