internal import Glibc
internal import SystemPackage

/// A descriptor open for writing; closed once.
final class LinuxWritableFile: WritableFile {
  private let descriptor: Int32
  private let path: FilePath

  init(descriptor: Int32, path: FilePath) {
    self.descriptor = descriptor
    self.path = path
  }

  func write(_ bytes: [UInt8]) throws(FileError) {
    var offset = 0
    while offset < bytes.count {
      let count = unsafe bytes.withUnsafeBytes { buffer in
        unsafe Glibc.write(
          descriptor, buffer.baseAddress?.advanced(by: offset), buffer.count - offset)
      }
      if count < 0 && Errno.current == .interrupted { continue }
      guard count > 0 else { throw FileError(.write, path, .current) }
      offset += count
    }
  }

  func changeOwner(to owner: FileOwner) throws(FileError) {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      throw FileError(.changeOwner, path, .current)
    }
    if FileStatus(status).owner == owner { return }
    guard fchown(descriptor, owner.userID, owner.groupID) == 0 else {
      throw FileError(.changeOwner, path, .current)
    }
  }

  func synchronize() throws(FileError) {
    guard fsync(descriptor) == 0 else { throw FileError(.synchronize, path, .current) }
  }

  func close() {
    _ = Glibc.close(descriptor)
  }
}
