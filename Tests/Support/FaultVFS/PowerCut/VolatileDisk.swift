package import FileLayer
package import SystemPackage

/// A disk that follows a recording event by event, and can say at any of them what a power cut
/// would leave.
///
/// Names and contents live apart, as in `DiskReplay`: fsync makes contents durable, fsync of the
/// directory makes names durable. What is neither may be there or not, contents by the sector.
package struct VolatileDisk: Sendable {
  /// What the cut takes away.
  package enum Loss: Sendable {
    /// Nothing: the process was killed.
    case nothing
    /// All that was not synchronized.
    case everythingUnsynchronized
    /// Some of it, by a die with this seed.
    case some(seed: UInt64)
  }

  private enum NameChange: Sendable {
    case add(FilePath, file: Int)
    case remove(FilePath)
    case rename(FilePath, to: FilePath)
  }

  private var files: [VolatileFile] = []
  private var names: [FilePath: Int] = [:]
  private var durableNames: [FilePath: Int] = [:]
  private var pendingNames: [NameChange] = []

  /// Starts with files that are durable.
  package init(_ initial: [FilePath: [UInt8]] = [:]) {
    for (path, contents) in initial.sorted(by: { $0.key.string < $1.key.string }) {
      names[path] = files.count
      files.append(VolatileFile(durable: contents))
    }
    durableNames = names
  }

  package mutating func apply(_ event: FileEvent) {
    switch event {
    case .create(let path): _ = file(at: path)
    case .write(let path, let offset, let bytes):
      files[file(at: path)].apply(.write(offset: Int(offset), bytes: bytes))
    case .truncate(let path, let byteCount):
      files[file(at: path)].apply(.truncate(Int(byteCount)))
    case .synchronize(let path): files[file(at: path)].synchronize()
    case .rename(let path, let target): change(.rename(path, to: target))
    case .remove(let path): change(.remove(path))
    case .synchronizeDirectory(let directory):
      // Every recording here stays within one directory.
      precondition(names.keys.allSatisfy { $0.removingLastComponent() == directory })
      durableNames = names
      pendingNames = []
    case .createDirectory, .changeOwner, .lock, .unlock, .mark: break
    }
  }

  /// Whether all is durable, so that a power cut has no choice.
  package var isSettled: Bool { pendingNames.isEmpty && files.allSatisfy(\.isSettled) }

  /// The files that are there after a cut at this moment, by full path.
  package func files(after loss: Loss) -> [String: [UInt8]] {
    var found: [String: [UInt8]] = [:]
    switch loss {
    case .nothing:
      for (path, file) in names { found[path.string] = files[file].contents }
    case .everythingUnsynchronized:
      for (path, file) in durableNames { found[path.string] = files[file].durable }
    case .some(let seed):
      var dice = SeededRandom(seed: seed)
      let names = names(&dice)
      for path in names.keys.sorted(by: { $0.string < $1.string }) {
        guard let file = names[path] else { continue }
        // No file system of today shows stale bytes in a file that was just made, but a log or
        // journal is meant to survive even that.
        let isSibling = path.string.hasSuffix("-wal") || path.string.hasSuffix("-journal")
        found[path.string] = files[file].contents(&dice, mayShowStaleBytes: isSibling)
      }
    }
    return found
  }

  /// The names that reached the disk: a beginning of their changes, or any of them.
  private func names(_ dice: inout SeededRandom) -> [FilePath: Int] {
    var names = durableNames
    if dice.oneIn(2) {
      for change in pendingNames.prefix(dice.next(pendingNames.count + 1)) {
        Self.apply(change, to: &names)
      }
    } else {
      for change in pendingNames where dice.oneIn(2) { Self.apply(change, to: &names) }
    }
    return names
  }

  private mutating func change(_ change: NameChange) {
    Self.apply(change, to: &names)
    pendingNames.append(change)
  }

  private static func apply(_ change: NameChange, to names: inout [FilePath: Int]) {
    switch change {
    case .add(let path, let file): names[path] = file
    case .remove(let path): names[path] = nil
    case .rename(let path, let target):
      if let file = names.removeValue(forKey: path) { names[target] = file }
    }
  }

  private mutating func file(at path: FilePath) -> Int {
    if let file = names[path] { return file }
    files.append(VolatileFile())
    change(.add(path, file: files.count - 1))
    return files.count - 1
  }
}
