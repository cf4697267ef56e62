internal import CSQLite
internal import Synchronization

/// The registered keys of the process, by the full path of their database.
enum KeyRegistry {
  private static let entries = Mutex<[String: [RegisteredKey]]>([:])

  static func add(_ registered: RegisteredKey) {
    entries.withLock { $0[registered.path, default: []].append(registered) }
  }

  static func remove(_ registered: RegisteredKey) {
    entries.withLock { entries in
      entries[registered.path]?.removeAll { $0 === registered }
      if entries[registered.path]?.isEmpty == true { entries[registered.path] = nil }
    }
  }

  /// The key that was registered last for this database.
  static func find(database path: UnsafePointer<CChar>) -> RegisteredKey? {
    entries.withLock { entries in
      entries.isEmpty ? nil : unsafe entries[String(cString: path)]?.last
    }
  }

  /// The key of the database that a log, journal or super-journal of this name belongs to.
  static func find(databaseOrSibling path: UnsafePointer<CChar>) -> RegisteredKey? {
    entries.withLock { entries in
      if entries.isEmpty { return nil }
      let path = unsafe String(cString: path)
      for suffix in ["-wal", "-journal"] where path.hasSuffix(suffix) {
        if let found = entries[String(path.dropLast(suffix.count))]?.last { return found }
      }
      // vdbeaux.c: the database's path, "-mj", six digits, "9" and two digits.
      let superJournalSuffix = path.suffix(12)
      if superJournalSuffix.hasPrefix("-mj"),
        let found = entries[String(path.dropLast(superJournalSuffix.count))]?.last
      {
        return found
      }
      return entries[path]?.last
    }
  }
}
