package import DataVault
internal import FileLayer
internal import GRDB
package import VaultedDatabase

/// Looks for what keeps a queue from being used, or soon will: a full disk, a missing reserve, an older copy, a limit
/// that is nearly reached.
///
/// It changes nothing. `HomeDoctor` finds problems of the files themselves.
package enum QueueDoctor {
  /// The part of its limit from which a database is reported, in percent.
  private static let warningPercentage = 90

  /// The free space of the database's disk, and the reserve beside the database.
  ///
  /// No vault is opened.
  package static func examineDisk(of home: DataVaultHome) -> [HomeFinding] {
    guard let database = try? home.fileSystem.status(of: home.databasePath),
      database.kind != .directory
    else { return [] }
    let reserve = DiskReserve(
      besideDatabase: home.databasePath, byteCount: EngineConfiguration().reserveByteCount,
      in: home.fileSystem)
    let free = reserve.freeByteCount
    let needed = reserve.isMade ? reserve.byteCount : reserve.neededByteCount
    if free < needed { return [.diskNearlyFull(home, free: free, needed: needed)] }
    // A queue that takes less than the reserve has little to give back, and an engine makes the file in time.
    guard !reserve.isMade, reserve.wasReleased || database.byteCount >= reserve.byteCount else {
      return []
    }
    return [.reserveMissing(home, reserve)]
  }

  /// Whether a home's database belongs to its vault, is no older copy, and is below its limit.
  ///
  /// - Parameter vault: the messaging vault of the home, unlocked.
  package static func examineDatabase(
    of home: DataVaultHome, vault: Vault
  ) async -> [HomeFinding] {
    await HomeDoctor.examineDatabase(
      of: home, vault: vault, anchorStorage: EngineAnchorStorage()
    ) { db in
      let size = try DatabaseSize(db, at: home.databasePath)
      guard let limit = size.maximumByteCount,
        Double(size.byteCount) >= Double(limit) * Double(warningPercentage) / 100
      else { return [] }
      return [.limitNearlyReached(home, size.byteCount, limit)]
    }
  }
}

extension HomeFinding {
  fileprivate static func diskNearlyFull(
    _ home: DataVaultHome, free: Int, needed: Int
  ) -> HomeFinding {
    HomeFinding(
      "diskNearlyFull",
      "only \(free >> 10) KiB are free on the disk of \(home.databasePath), "
        + "and the queue needs \(needed >> 10) KiB for its maintenance",
      fix:
        "free space on that disk; or remove messages with datavault queue purge CHANNEL, then run "
        + "datavault queue compact")
  }

  fileprivate static func reserveMissing(
    _ home: DataVaultHome, _ reserve: DiskReserve
  ) -> HomeFinding {
    HomeFinding(
      "reserveMissing",
      reserve.wasReleased
        ? "the reserve \(reserve.path) was released when the disk was full, and was not made again"
        : "the reserve \(reserve.path), which receivers need on a full disk, does not exist",
      fix:
        "if no engine of this home has the reserve switched off, run datavault queue compact, which makes it"
    )
  }

  fileprivate static func limitNearlyReached(
    _ home: DataVaultHome, _ byteCount: Int, _ limit: Int
  ) -> HomeFinding {
    let fix =
      "receive and acknowledge messages, or remove some with datavault queue purge CHANNEL; to raise the limit, run "
      + "datavault queue limit set --bytes N"
    if byteCount >= limit {
      return HomeFinding(
        "queueFull",
        "\(home.databasePath) has reached its limit, and publishing is refused: "
          + "it has \(byteCount) of \(limit) bytes", fix: fix)
    }
    let percentage = Int(Double(byteCount) / Double(limit) * 100)
    return HomeFinding(
      "limitNearlyReached",
      "\(home.databasePath) has nearly reached its limit: it has \(byteCount) of \(limit) bytes (\(percentage) %)",
      fix: fix)
  }
}
