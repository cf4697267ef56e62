public import GRDB
internal import SealedVFS

extension SealedDatabase {
  /// Closes a pool: its readers first, its writer last.
  ///
  /// The last connection to a database brings the write-ahead log into it and deletes the log; one that
  /// cannot write does not. `DatabasePool.close()` closes the writer before the readers, and leaves a log and its
  /// index behind: a copy of the database file alone then lacks what the log holds. Where a connection of
  /// the pool has met a damaged page, the log stays as it is.
  ///
  /// Waits for reads and writes that are under way. None may begin meanwhile.
  ///
  /// - Throws: `busy` while a statement of the writer still runs: the pool is then open.
  public static func close(_ pool: DatabasePool) throws(SealedDatabaseError) {
    do {
      // It throws for a pool that is closed, which is nothing to be told of.
      try? pool.barrierWriteWithoutTransaction { db in
        pool.invalidateReadOnlyConnections()
        if let connection = unsafe db.sqliteConnection {
          unsafe OpenDatabases.registration(of: pool)?.keepLogAfterDamage(on: connection)
        }
      }
      try pool.close()
    } catch let error as DatabaseError {
      throw SealedDatabaseError(explaining: error, in: pool)
    } catch {
      throw SealedDatabaseError(.sqlite, "\(pool.path) does not close", underlying: error)
    }
  }
}
