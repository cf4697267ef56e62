internal import FileLayer
internal import Glibc
public import SystemPackage
public import VaultCrypto

/// The place of a database's key outside a vault: it holds exactly 32 raw bytes, no newline.
public enum KeySource: Sendable, Equatable {
  /// A regular file that only its owner can read or write; symbolic links are followed.
  case file(FilePath)
  /// An open descriptor, which stays open.
  ///
  /// A pipe is read to its end, and gives its key once. A regular file is read from its beginning,
  /// any number of times.
  case descriptor(Int32)

  /// The length of a database's key, from which the keys of its ciphers are derived.
  static let keyByteCount = 32

  /// Reads the key from the kernel straight into locked memory.
  ///
  /// The call waits until the other end of a pipe is closed.
  ///
  /// - Returns: 32 bytes.
  /// - Throws: `keyFileRefused`, with the reason; `inputOutput`.
  public func read() throws(SealedDatabaseError) -> SecretBytes {
    switch self {
    case .file(let path): try readFile(path)
    case .descriptor(let number): try readDescriptor(number)
    }
  }

  private func readFile(_ path: FilePath) throws(SealedDatabaseError) -> SecretBytes {
    // Checked before the file is opened. To open and close a database by mistake would release the
    // locks that this process holds on it (POSIX locks; see os_unix.c).
    var status = Glibc.stat()
    guard unsafe stat(path.string, &status) == 0 else { throw systemFailure }
    try requirePrivateFile(status)
    let descriptor = unsafe open(path.string, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw systemFailure }
    defer { _ = close(descriptor) }
    guard unsafe fstat(descriptor, &status) == 0 else { throw systemFailure }
    try requirePrivateFile(status)
    return try contents(of: descriptor, isRegularFile: true)
  }

  private func requirePrivateFile(_ status: Glibc.stat) throws(SealedDatabaseError) {
    guard status.st_mode & S_IFMT == S_IFREG else { throw refusal("it is not a regular file") }
    if let reason = SecretFile.refusal(mode: status.st_mode, path: name) { throw refusal(reason) }
    guard status.st_size == Self.keyByteCount else { throw wrongLength }
  }

  private func readDescriptor(_ number: Int32) throws(SealedDatabaseError) -> SecretBytes {
    var status = Glibc.stat()
    guard unsafe fstat(number, &status) == 0 else { throw systemFailure }
    let kind = status.st_mode & S_IFMT
    guard kind == S_IFREG || kind == S_IFIFO || kind == S_IFSOCK else {
      throw refusal("it is neither a file nor a pipe")
    }
    return try contents(of: number, isRegularFile: kind == S_IFREG)
  }

  /// Reads at most one byte more than a key has.
  private func contents(
    of descriptor: Int32, isRegularFile: Bool
  ) throws(SealedDatabaseError) -> SecretBytes {
    var bytes = SecretBytes(zeroCount: Self.keyByteCount + 1)
    var byteCount = 0
    while byteCount < bytes.byteCount {
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[byteCount...])
        return isRegularFile
          ? unsafe pread(descriptor, rest.baseAddress, rest.count, byteCount)
          : unsafe Glibc.read(descriptor, rest.baseAddress, rest.count)
      }
      if count == 0 { break }
      if count > 0 {
        byteCount += count
      } else if errno != EINTR {
        throw systemFailure
      }
    }
    guard byteCount == Self.keyByteCount else { throw wrongLength }
    return bytes.copy(0..<byteCount)
  }

  private var systemFailure: SealedDatabaseError {
    let reason = Errno(rawValue: errno)
    return reason == .ioError
      ? SealedDatabaseError(.inputOutput, path: name, detail: "\(reason)") : refusal("\(reason)")
  }

  private var wrongLength: SealedDatabaseError {
    refusal("it does not hold \(Self.keyByteCount) bytes")
  }

  private func refusal(_ detail: String) -> SealedDatabaseError {
    SealedDatabaseError(.keyFileRefused, path: name, detail: detail)
  }

  private var name: String {
    switch self {
    case .file(let path): path.string
    case .descriptor(let number): "descriptor \(number)"
    }
  }
}
