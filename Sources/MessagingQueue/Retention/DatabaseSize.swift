internal import GRDB
internal import Glibc
internal import SystemPackage

/// The size of a message database, its limit, and the free space of its disk.
public struct DatabaseSize: Sendable, Hashable {
  /// The bytes in use, by messages and by your own tables.
  ///
  /// Free pages and the log do not count.
  public let byteCount: Int
  /// The limit that ``MessagingEngine/setMaximumDatabaseByteCount(_:)`` has set; nil for none, and in
  /// tables older than version 3.
  public let maximumByteCount: Int?
  /// The free bytes of the database's file system, without those that only root can use; 0 if the
  /// system does not tell.
  public let freeDiskByteCount: Int
}

extension DatabaseSize {
  /// Reads size and limit in the caller's snapshot; in tables older than version 3, the limit is nil.
  init(_ db: Database, at path: FilePath) throws {
    byteCount = try Self.byteCount(db)
    let version = try db.number("PRAGMA user_version") ?? 0
    maximumByteCount = version < EngineSchema.firstVersionWithLimit ? nil : try Self.limit(db)
    freeDiskByteCount = Self.freeDiskByteCount(at: path)
  }

  /// Throws `queueFull` if the database has reached its limit.
  static func requireSpace(_ db: Database) throws {
    guard let limit = try limit(db) else { return }
    let byteCount = try byteCount(db)
    guard byteCount >= limit else { return }
    throw EngineError(
      .queueFull, "the queue has \(byteCount) bytes, and its limit is \(limit)",
      hint:
        "receive and acknowledge messages, remove some with datavault queue purge, or raise the limit "
        + "with datavault queue limit set --bytes N")
  }

  /// Sets the limit; nil for none.
  static func setLimit(_ byteCount: Int?, _ db: Database) throws {
    try db.cachedStatement(sql: "UPDATE engine SET most_bytes = ?").execute(arguments: [byteCount])
  }

  private static func limit(_ db: Database) throws -> Int? {
    let select = try EngineStatement(db, "SELECT most_bytes FROM engine")
    return try select.first { $0.optionalNumber(at: 0) }.flatMap { $0 }.map { Int($0) }
  }

  private static func byteCount(_ db: Database) throws -> Int {
    let pageCount = try db.number("PRAGMA page_count") ?? 0
    let freeCount = try db.number("PRAGMA freelist_count") ?? 0
    return Int(pageCount - freeCount) * 4096
  }

  /// The free bytes of a file's file system, without those that only root can use; 0 if the system does not tell.
  static func freeDiskByteCount(at path: FilePath) -> Int {
    var status = statvfs()
    guard unsafe statvfs(path.string, &status) == 0 else { return 0 }
    let (byteCount, isTooLarge) = Int(clamping: status.f_bavail)
      .multipliedReportingOverflow(by: Int(clamping: status.f_frsize))
    return isTooLarge ? .max : byteCount
  }
}

extension MessagingEngine {
  /// Sets the size of the database at which every engine on it refuses to publish and to import
  /// (``EngineError/Code/queueFull``), in bytes.
  ///
  /// Receiving, settling and purging continue, and make space. On return the limit is on the disk. It applies to the
  /// commits that come next, in every process. A new database has no limit.
  ///
  /// - Parameter byteCount: 1 to 2^53; nil for no limit. It can be less than the present size.
  /// - Throws: `invalidArgument`; `busy`, `diskFull`, `stopped`, `vaultLocked`, `damaged`, `inputOutput`,
  ///   `outcomeUnknown`, `cancelled`.
  public func setMaximumDatabaseByteCount(_ byteCount: Int?) async throws(EngineError) {
    if let byteCount, !(1...Retention.greatestLimit).contains(byteCount) {
      throw EngineError(
        .invalidArgument, "the limit of the database is \(byteCount) bytes",
        hint: "use 1 to \(Retention.greatestLimit)")
    }
    try await commit(during: "setting the limit of the database") { _, db in
      try DatabaseSize.setLimit(byteCount, db)
    }
  }

  /// The size of the database, its limit, and the free space of its disk.
  ///
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  public func databaseSize() async throws(EngineError) -> DatabaseSize {
    try await access.read(during: "reading the size") { [databasePath] db in
      try DatabaseSize(db, at: databasePath)
    }
  }
}
