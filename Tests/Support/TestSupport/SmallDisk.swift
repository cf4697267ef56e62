import Foundation
import Glibc
import SystemPackage

/// A small file system: a tmpfs(5), which only root can mount.
package final class SmallDisk: Sendable {
  /// Checked once, by mounting one.
  package static let isAvailable: Bool = {
    let folder = ScratchFolder()
    return (try? SmallDisk(at: folder.path("disk"), byteCount: 65536)) != nil
  }()

  package let path: String

  /// Mounts it at a directory, which is created if necessary, and unmounts it in `deinit`.
  package init(at path: String, byteCount: Int) throws {
    self.path = path
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try mount(flags: 0, byteCount: byteCount)
  }

  package func resize(byteCount: Int) throws {
    try mount(flags: UInt(MS_REMOUNT), byteCount: byteCount)
  }

  package var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  /// Fills all but some bytes with a file of its own, which a later call makes again.
  package func fill(leaving freeByteCount: Int = 0) throws {
    let file = try FileDescriptor.open(
      filler, .writeOnly, options: .create, permissions: .ownerReadWrite)
    defer { try? file.close() }
    try file.seek(offset: 0, from: .end)
    for pieceByteCount in [1 << 16, 4096] {
      let piece = [UInt8](repeating: 1, count: pieceByteCount)
      do {
        while true { try file.writeAll(piece) }
      } catch Errno.noSpace {}
    }
    let byteCount = try file.seek(offset: 0, from: .end)
    try file.resize(to: byteCount - Int64(freeByteCount))
  }

  /// Removes the file of ``fill()``.
  package func empty() throws { try FileManager.default.removeItem(atPath: filler) }

  private var filler: String { path + "/filler" }

  private func mount(flags: UInt, byteCount: Int) throws {
    let result = Glibc.mount("tmpfs", path, "tmpfs", flags, "size=\(byteCount),mode=0700")
    guard result == 0 else { throw Errno(rawValue: errno) }
  }

  deinit { umount2(path, Int32(MNT_DETACH)) }
}
