import Synchronization

/// Files in memory behind an SQLite VFS, so that a rebuilt disk opens in a fraction of a
/// millisecond.
///
/// Only one connection can use the disk at a time: it has no locks, and a log's shared memory lies
/// in the heap. The VFS stays registered until the process ends. ``load(_:)`` gives the disk new
/// contents.
package final class MemoryDisk: @unchecked Sendable {
  // Sendable: a disk belongs to one test, which uses it from one thread at a time.

  /// The name by which SQLite finds the VFS; each disk has a different one.
  package let name: String

  var files: [String: MemoryFile] = [:]

  /// Called before a file is removed, as in the last step of a commit, while its journal still
  /// exists.
  package var willRemove: (String) -> Void = { _ in }

  private static let count = Atomic<Int>(0)

  package init() {
    name = "memory-\(Self.count.add(1, ordering: .relaxed).newValue)"
    MemoryCallbacks.register(self)
  }

  /// Replaces all files by these, given by their full paths.
  package func load(_ contents: [String: [UInt8]]) {
    files = contents.mapValues(MemoryFile.init)
  }

  /// All files, by path.
  package var contents: [String: [UInt8]] { files.mapValues(\.bytes) }
}

/// The bytes of one file, and the shared memory of its log.
final class MemoryFile {
  var bytes: [UInt8]
  private var regions: [UnsafeMutableRawPointer] = []

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  deinit { dropRegions() }

  /// Reads the bytes in the file, and zeros after its end; returns false for a short read.
  func read(_ target: UnsafeMutableRawPointer, _ byteCount: Int, at offset: Int) -> Bool {
    let found = min(max(bytes.count - offset, 0), byteCount)
    if found > 0 {
      bytes.withUnsafeBytes { source in
        guard let start = source.baseAddress else { return }
        target.copyMemory(from: start + offset, byteCount: found)
      }
    }
    if found < byteCount {
      (target + found).initializeMemory(as: UInt8.self, repeating: 0, count: byteCount - found)
    }
    return found == byteCount
  }

  func write(_ source: UnsafeRawPointer, _ byteCount: Int, at offset: Int) {
    bytes.overwrite(at: offset, with: UnsafeRawBufferPointer(start: source, count: byteCount))
  }

  func resize(to byteCount: Int) { bytes.resize(to: byteCount) }

  /// A region of shared memory; nil if it does not exist and must not be created.
  func region(_ index: Int, byteCount: Int, isExtending: Bool) -> UnsafeMutableRawPointer? {
    while isExtending && regions.count <= index {
      let region = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
      region.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
      regions.append(region)
    }
    return index < regions.count ? regions[index] : nil
  }

  func dropRegions() {
    for region in regions { region.deallocate() }
    regions = []
  }
}

extension [UInt8] {
  /// Writes into a file's bytes, with zeros between its end and the offset.
  mutating func overwrite(at offset: Int, with source: UnsafeRawBufferPointer) {
    if count < offset + source.count { resize(to: offset + source.count) }
    guard let from = source.baseAddress, !source.isEmpty else { return }
    withUnsafeMutableBytes { target in
      guard let start = target.baseAddress else { return }
      (start + offset).copyMemory(from: from, byteCount: source.count)
    }
  }

  /// Cuts the bytes, or appends zeros.
  mutating func resize(to byteCount: Int) {
    if count > byteCount {
      removeLast(count - byteCount)
    } else if count < byteCount {
      append(contentsOf: [UInt8](repeating: 0, count: byteCount - count))
    }
  }
}
