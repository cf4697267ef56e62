package import SystemPackage

/// What the disk would hold if the power had gone after some of the recorded events.
///
/// Names and contents live apart, as on a real file system: fsync makes a file's contents durable,
/// fsync of its directory makes its name durable, and a rename carries contents that are as
/// volatile as they were. A directory made in the recording is durable, with all that it holds,
/// once the directory above it was synchronized.
package struct DiskReplay: Sendable {
  /// What a power cut takes away.
  package enum Loss: Sendable {
    /// Nothing: every step up to the cut reached the disk (a killed process).
    case nothing
    /// All that was not synchronized: contents without fsync, names without a directory fsync.
    case everythingUnsynchronized
    /// Contents without fsync, while names reached the disk at once: a file system that commits
    /// its journal before the data. It leaves an empty file where a rename came before the fsync.
    case unsynchronizedContents
  }

  /// A file apart from its name.
  private struct Inode: Sendable {
    var contents: [UInt8] = []
    var durableContents: [UInt8] = []
  }

  private var inodes: [Inode] = []
  private var names: [FilePath: Int] = [:]
  private var durableNames: [FilePath: Int] = [:]
  private var volatileDirectories: Set<FilePath> = []

  /// Replays events on top of the files that lay there before, which were durable.
  package init(
    _ events: some Sequence<FileEvent>, initialFiles: [FilePath: [UInt8]] = [:]
  ) {
    for (path, contents) in initialFiles {
      names[path] = inodes.count
      inodes.append(Inode(contents: contents, durableContents: contents))
    }
    durableNames = names
    for event in events { apply(event) }
  }

  /// What is there after the cut, by path.
  package func files(after loss: Loss) -> [FilePath: [UInt8]] {
    switch loss {
    case .nothing: names.mapValues { inodes[$0].contents }
    case .everythingUnsynchronized:
      durableNames.filter { name, _ in !volatileDirectories.contains { name.isInside($0) } }
        .mapValues { inodes[$0].durableContents }
    case .unsynchronizedContents: names.mapValues { inodes[$0].durableContents }
    }
  }

  /// Lets one more event happen.
  package mutating func apply(_ event: FileEvent) {
    switch event {
    case .create(let path):
      _ = inode(at: path)
    case .write(let path, let offset, let bytes):
      let inode = inode(at: path)
      let end = Int(offset) + bytes.count
      inodes[inode].contents.extend(to: end)
      inodes[inode].contents.replaceSubrange(Int(offset)..<end, with: bytes)
    case .truncate(let path, let byteCount):
      let inode = inode(at: path)
      inodes[inode].contents = Array(inodes[inode].contents.prefix(Int(byteCount)))
      inodes[inode].contents.extend(to: Int(byteCount))
    case .synchronize(let path):
      let inode = inode(at: path)
      inodes[inode].durableContents = inodes[inode].contents
    case .rename(let path, let target):
      names[target] = names.removeValue(forKey: path)
    case .remove(let path):
      names[path] = nil
    case .synchronizeDirectory(let directory):
      for path in Set(names.keys).union(durableNames.keys)
      where path.containingDirectory == directory {
        durableNames[path] = names[path]
      }
      volatileDirectories = volatileDirectories.filter { $0.containingDirectory != directory }
    case .createDirectory(let directory):
      if !names.keys.contains(where: { $0.isInside(directory) }) {
        volatileDirectories.insert(directory)
      }
    case .changeOwner, .lock, .unlock, .mark:
      break
    }
  }

  /// The file that has this name now, made empty where there is none.
  private mutating func inode(at path: FilePath) -> Int {
    if let inode = names[path] { return inode }
    names[path] = inodes.count
    inodes.append(Inode())
    return inodes.count - 1
  }
}

extension FilePath {
  fileprivate func isInside(_ directory: FilePath) -> Bool {
    self != directory && starts(with: directory)
  }
}

extension [UInt8] {
  /// Appends zeros up to a length, as a file does that is written past its end.
  fileprivate mutating func extend(to byteCount: Int) {
    if count < byteCount { append(contentsOf: repeatElement(0, count: byteCount - count)) }
  }
}
