internal import FileLayer
internal import SystemPackage

/// Files that an interrupted command, a salvage or another program has left in a home.
///
/// The next command of the kind removes or continues what an interrupted one has left. Until then it takes space, or
/// holds messages in clear.
extension HomeDoctor {
  static func leftovers(of home: DataVaultHome) throws(FileError) -> [HomeFinding] {
    let names = try home.fileSystem.entries(of: home.path) ?? []
    var findings = try filesWithoutDatabase(home)
    if isUnused(home.lockPath, home) {
      // A protocol that is under way has these files and holds the lock.
      for path in [home.creationPath, home.databasePath.temporarySibling] {
        findings += try unfinished(path, home)
      }
    }
    let damaged = "\(home.databasePath.lastComponent?.string ?? "").damaged-"
    for name in names where name.hasPrefix(damaged) && isRegular(home.path.appending(name), home) {
      let path = home.path.appending(name)
      findings.append(
        .leftover(
          "a salvage has kept \(path), part of a damaged database",
          fix: "if no message is missing, run rm \(path.shellWord)"))
    }
    for name in names where name.hasSuffix(".partial") {
      let path = home.path.appending(name)
      guard isRegular(path, home), isUnused(path, home) else { continue }
      let export = FilePath(String(path.string.dropLast(".partial".count)))
      findings.append(
        .leftover(
          "\(path) is an unfinished export, with messages in clear",
          fix:
            "run datavault queue export \(export.shellWord), which continues it, or rm \(path.shellWord)"
        ))
    }
    let hidden = names.filter { $0.hasPrefix(".") && $0.hasSuffix(".new") }
    for path in hidden.map(home.path.appending) + [home.path.temporarySibling] {
      guard try home.fileSystem.status(of: path)?.kind == .directory,
        try home.fileSystem.status(of: path.appending("messaging.lock")) != nil,
        isUnused(path.appending("messaging.lock"), home)
      else { continue }
      findings.append(
        .leftover(
          "\(path) is an unfinished backup or restored home", fix: "run rm -r \(path.shellWord)"))
    }
    return findings
  }

  /// Shared memory, the reserve, and an empty log or journal; a log that is not empty shows that a database is missing.
  private static func filesWithoutDatabase(
    _ home: DataVaultHome
  ) throws(FileError) -> [HomeFinding] {
    guard try home.fileSystem.status(of: home.databasePath) == nil else { return [] }
    var findings: [HomeFinding] = []
    for suffix in ["-wal", "-shm", "-journal", "-reserve"] {
      let path = FilePath(home.databasePath.string + suffix)
      guard let status = try home.fileSystem.status(of: path), status.kind == .regular else {
        continue
      }
      let isEmpty = status.byteCount == 0
      guard suffix == "-shm" || isEmpty == (suffix != "-reserve") else { continue }
      findings.append(
        .leftover("\(path) is there without its database", fix: "run rm \(path.shellWord)"))
    }
    return findings
  }

  /// A database that an interrupted creation, change of key or salvage has not finished.
  ///
  /// That of a salvage is no leftover if the vault is bound to it: ask that first.
  static func unfinished(
    _ path: FilePath, _ home: DataVaultHome
  ) throws(FileError) -> [HomeFinding] {
    var paths: [FilePath] = []
    for suffix in ["", "-wal", "-shm", "-journal"] {
      let path = FilePath(path.string + suffix)
      if isRegular(path, home) { paths.append(path) }
    }
    guard !paths.isEmpty else { return [] }
    return [
      .leftover(
        "an interrupted command has left \(paths.map(\.string).joined(separator: " "))",
        fix: "run rm \(paths.map(\.shellWord).joined(separator: " "))")
    ]
  }

  private static func isRegular(_ path: FilePath, _ home: DataVaultHome) -> Bool {
    (try? home.fileSystem.status(of: path))?.kind == .regular
  }

  /// Whether no process holds the lock on a file.
  static func isUnused(_ path: FilePath, _ home: DataVaultHome) -> Bool {
    do throws(FileError) {
      guard try home.fileSystem.status(of: path) != nil else { return true }
      guard let lock = try home.fileSystem.lock(path, wait: false) else { return false }
      lock.release()
    } catch {
      // That the home's own lock file is unusable is a finding of its own. Any other can be in use.
      return path == home.lockPath
    }
    return true
  }
}

extension HomeFinding {
  fileprivate static func leftover(_ message: String, fix: String) -> HomeFinding {
    HomeFinding("leftoverFile", message, fix: fix)
  }
}
