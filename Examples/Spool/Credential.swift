internal import Foundation
internal import Glibc
internal import VaultCrypto

/// A secret that systemd passes to the service as a file in $CREDENTIALS_DIRECTORY.
///
/// The file is in memory that is never swapped. See systemd.exec(5), `LoadCredentialEncrypted=`.
enum Credential {
  private static let maximumByteCount = 64 << 10

  /// Reads a credential into locked memory; nil if it does not exist.
  ///
  /// One final newline is removed.
  static func read(_ name: String) throws(DaemonError) -> SecretBytes? {
    guard let directory = ProcessInfo.processInfo.environment["CREDENTIALS_DIRECTORY"] else {
      return nil
    }
    let path = "\(directory)/\(name)"
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 && errno == ENOENT { return nil }
    guard descriptor >= 0 else { throw .current(EX_NOPERM, "cannot read \(path)") }
    defer { _ = close(descriptor) }
    var bytes = SecretBytes(zeroCount: maximumByteCount)
    var byteCount = 0
    while byteCount < maximumByteCount {
      let count = unsafe bytes.withUnsafeMutableBytes {
        unsafe Glibc.read(
          descriptor, $0.baseAddress.map { unsafe $0 + byteCount }, $0.count - byteCount)
      }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw .current(EX_IOERR, "cannot read \(path)") }
      if count == 0 { break }
      byteCount += count
    }
    let endsWithNewline = unsafe bytes.withUnsafeBytes {
      unsafe byteCount > 0 && $0[byteCount - 1] == UInt8(ascii: "\n")
    }
    return bytes.copy(0..<(endsWithNewline ? byteCount - 1 : byteCount))
  }
}
