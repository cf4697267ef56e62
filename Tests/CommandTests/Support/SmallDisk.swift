import Foundation
import Glibc
import Testing

/// A disk of its own with little room: a tmpfs(5), which only root may mount.
final class SmallDisk {
  static let skipReason: Comment = "mounting a small tmpfs needs root"

  /// Tried once.
  static let isAvailable: Bool = {
    guard let folder = try? ScratchFolder() else { return false }
    return (try? SmallDisk(at: folder.path("disk"), byteCount: 65536)) != nil
  }()

  struct MountError: Error {
    let number: Int32
  }

  let path: String

  /// Mounts it at a directory, which is made if need be; it is unmounted with this object.
  init(at path: String, byteCount: Int) throws {
    self.path = path
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try mount(flags: 0, byteCount: byteCount)
  }

  func resize(byteCount: Int) throws {
    try mount(flags: UInt(MS_REMOUNT), byteCount: byteCount)
  }

  var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  private func mount(flags: UInt, byteCount: Int) throws {
    let result = Glibc.mount("tmpfs", path, "tmpfs", flags, "size=\(byteCount),mode=0700")
    guard result == 0 else { throw MountError(number: errno) }
  }

  deinit { umount2(path, Int32(MNT_DETACH)) }
}
