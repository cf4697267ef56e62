internal import GRDB
internal import SystemPackage

extension ChangeBell {
  /// The bell of an engine, with a file beside the database.
  package convenience init(
    of snapshots: SnapshotReader, isLockedOut: @escaping @Sendable () -> Bool
  ) {
    self.init(
      device: BellFile(besideDatabase: FilePath(snapshots.path)),
      probe: {
        let commitNumber = try? snapshots.read { db in
          try Int64.fetchOne(db, sql: "SELECT commit_number FROM engine")
        }
        guard let commitNumber else { return nil }
        return BellProbe(commitNumber: commitNumber, isLockedOut: isLockedOut())
      })
  }
}
