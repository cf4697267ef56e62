import Foundation
import Glibc
import SystemPackage

/// A small file system: a tmpfs(5), which only root can mount.
package final class SmallDisk {
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

  private func mount(flags: UInt, byteCount: Int) throws {
    let result = Glibc.mount("tmpfs", path, "tmpfs", flags, "size=\(byteCount),mode=0700")
    guard result == 0 else { throw Errno(rawValue: errno) }
  }

  deinit { umount2(path, Int32(MNT_DETACH)) }
}
