internal import FileLayer
package import SystemPackage

/// The contents of the disk if the power fails after some of the recorded events.
///
/// Names and contents are separate, as on a real file system. fsync makes a file's contents
/// durable, and fsync of its directory makes its name durable. A rename does not make the contents
/// durable. A directory that the recording created becomes durable, with everything in it, when its
/// parent directory is synchronized.
package struct DiskReplay: Sendable {
  /// The data that a power cut destroys.
  package enum Loss: Sendable {
    /// No loss: every step up to the cut reached the disk, as with a killed process.
    case nothing
    /// Everything unsynchronized: contents without fsync, names without a directory fsync.
    case everythingUnsynchronized
    /// Contents without fsync, while all names reached the disk: a file system that commits its
    /// journal before the data.
    ///
    /// It leaves an empty file where a rename came before the fsync.
    case unsynchronizedContents
  }

  /// A file without its name.
  private struct Inode: Sendable {
    var contents: [UInt8] = []
    var durableContents: [UInt8] = []
  }

  private var inodes: [Inode] = []
  private var names: [FilePath: Int] = [:]
  private var durableNames: [FilePath: Int] = [:]
  private var volatileDirectories: Set<FilePath> = []

  /// Replays events on top of initial files, which were durable.
  package init(_ events: some Sequence<FileEvent>, initialFiles: [FilePath: [UInt8]] = [:]) {
    for (path, contents) in initialFiles {
      names[path] = inodes.count
      inodes.append(Inode(contents: contents, durableContents: contents))
    }
    durableNames = names
    for event in events { apply(event) }
  }

  /// The files after the cut, by path.
  package func files(after loss: Loss) -> [FilePath: [UInt8]] {
    switch loss {
    case .nothing: names.mapValues { inodes[$0].contents }
    case .everythingUnsynchronized:
      durableNames.filter { name, _ in !volatileDirectories.contains { name.isInside($0) } }
        .mapValues { inodes[$0].durableContents }
    case .unsynchronizedContents: names.mapValues { inodes[$0].durableContents }
    }
  }

  /// Applies one more event.
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

  /// The inode that has this name now; a new empty one if there is none.
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
  /// Appends zeros up to a length, as a write past the end of a file does.
  fileprivate mutating func extend(to byteCount: Int) {
    if count < byteCount { self += Self(repeating: 0, count: byteCount - count) }
  }
}
