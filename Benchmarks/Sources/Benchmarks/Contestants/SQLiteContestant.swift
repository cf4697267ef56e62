import GRDBSQLite
import Glibc
import SealedVFS
import SystemPackage
import VaultCrypto

/// The distribution's SQLite through its C interface, on sealed or plain files.
final class SQLiteContestant: Contestant {
  private let folder: FilePath
  private let isSealed: Bool
  private let key: SecretBytes
  private var connections: [String: SQLiteConnection] = [:]
  private var counters: [String: Int64] = [:]
  private var registrations: [KeyRegistration] = []

  init(
    folder: FilePath, isSealed: Bool, key: consuming SecretBytes = .random(byteCount: 32)
  ) {
    self.folder = folder
    self.isSealed = isSealed
    self.key = key
  }

  func path(of recipe: DatabaseRecipe) -> FilePath { folder.appending("\(recipe.name).db") }

  func prepare(_ recipe: DatabaseRecipe) throws {
    if connections[recipe.name] != nil { return }
    if isSealed {
      registrations.append(try SealedVFS.register(key: key, at: path(of: recipe)))
    }
    let connection = try open(recipe)
    for sql in ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = OFF"] + recipe.schema {
      try connection.execute(sql)
    }
    if let fill = recipe.fill { try run(fill, recipe, connection) }
    try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for sql in recipe.settings { try connection.execute(sql) }
    connections[recipe.name] = connection
  }

  func run(_ pass: Pass, on recipe: DatabaseRecipe, as kind: Workload.Kind) throws -> Cost {
    switch kind {
    case .pass:
      break
    case .coldPass:
      connections[recipe.name] = nil
      dropFromSystemCache(path(of: recipe))
      let connection = try open(recipe)
      for sql in recipe.settings { try connection.execute(sql) }
      connections[recipe.name] = connection
    case .opening:
      let once = Pass(statements: pass.statements, count: 1)
      return try Cost.of {
        for _ in 0..<pass.count { try run(once, recipe, open(recipe)) }
      }
    }
    guard let connection = connections[recipe.name] else {
      throw BenchmarkError("\(recipe.name) is not open")
    }
    return try Cost.of { try run(pass, recipe, connection) }
  }

  private func open(_ recipe: DatabaseRecipe) throws -> SQLiteConnection {
    try SQLiteConnection(path(of: recipe), isSealed: isSealed)
  }

  private func run(_ pass: Pass, _ recipe: DatabaseRecipe, _ connection: SQLiteConnection) throws {
    let first = counters[recipe.name, default: 1]
    counters[recipe.name] = try connection.run(pass, countingFrom: first)
  }

  /// Drops the file from the system's cache.
  ///
  /// All of it is on the disk already.
  private func dropFromSystemCache(_ path: FilePath) {
    let file = Glibc.open(path.string, O_RDONLY)
    guard file >= 0 else { return }
    fdatasync(file)
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)
    close(file)
  }
}
