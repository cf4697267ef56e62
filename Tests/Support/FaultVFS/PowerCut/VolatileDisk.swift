import TestSupport

package import FileRecording
internal import FileLayer
package import SystemPackage

/// A disk that follows a recording event by event, and shows at each event what a power cut leaves.
///
/// Names and contents are separate, as in `DiskReplay`: fsync makes contents durable, and fsync of
/// the directory makes names durable. A change that is not durable can be kept or lost, contents by
/// the sector.
package struct VolatileDisk: Sendable {
  /// The changes that a cut loses.
  package enum Loss: Sendable {
    /// Nothing: the process was killed.
    case nothing
    /// All changes that were not synchronized.
    case everythingUnsynchronized
    /// Some of them, chosen at random with this seed.
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

  /// Starts with durable files.
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
      // Every recording in these tests stays within one directory.
      precondition(names.keys.allSatisfy { $0.removingLastComponent() == directory })
      durableNames = names
      pendingNames = []
    case .createDirectory, .changeOwner, .lock, .unlock, .mark: break
    }
  }

  /// Whether all changes are durable, so that a power cut has only one outcome.
  package var isSettled: Bool { pendingNames.isEmpty && files.allSatisfy(\.isSettled) }

  /// The files after a cut at this moment, by full path.
  package func files(after loss: Loss) -> [String: [UInt8]] {
    var found: [String: [UInt8]] = [:]
    switch loss {
    case .nothing:
      for (path, file) in names { found[path.string] = files[file].contents }
    case .everythingUnsynchronized:
      for (path, file) in durableNames { found[path.string] = files[file].durable }
    case .some(let seed):
      var random = SeededRandom(seed: seed)
      let names = names(&random)
      for path in names.keys.sorted(by: { $0.string < $1.string }) {
        guard let file = names[path] else { continue }
        // No present file system shows stale bytes in a new file, but a log or journal must survive
        // even that.
        let isSibling = path.string.hasSuffix("-wal") || path.string.hasSuffix("-journal")
        found[path.string] = files[file].contents(&random, mayShowStaleBytes: isSibling)
      }
    }
    return found
  }

  /// The names that reached the disk: after a prefix of their changes, or after any of them.
  private func names(_ random: inout SeededRandom) -> [FilePath: Int] {
    var names = durableNames
    if random.oneIn(2) {
      for change in pendingNames.prefix(random.next(pendingNames.count + 1)) {
        Self.apply(change, to: &names)
      }
    } else {
      for change in pendingNames where random.oneIn(2) { Self.apply(change, to: &names) }
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
