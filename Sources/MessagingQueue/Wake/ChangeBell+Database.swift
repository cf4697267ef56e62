package import GRDB
internal import SystemPackage

extension ChangeBell {
  /// The bell of an engine on a pool, with a file beside the database.
  package convenience init(of pool: DatabasePool, isLockedOut: @escaping @Sendable () -> Bool) {
    self.init(
      device: BellFile(besideDatabase: FilePath(pool.path)),
      probe: {
        let commitNumber = try? pool.read { db in
          try Int64.fetchOne(db, sql: "SELECT commit_number FROM engine")
        }
        guard let commitNumber else { return nil }
        return BellProbe(commitNumber: commitNumber, isLockedOut: isLockedOut())
      })
  }
}
