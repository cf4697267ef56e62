internal import FileLayer
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// Finds out whether the disk of a home can be written, from time to time and apart from requests.
final class DiskProbe: Sendable {
  /// How often it looks.
  static let interval = Duration.seconds(5)
  /// After how long a disk that does not answer counts as one that cannot be written.
  private static let patience = Duration.seconds(30)
  private static let byteCount = 64 << 10

  /// When the last look has succeeded; nil if it has failed, or there was none.
  private let lastSuccess = Mutex<ContinuousClock.Instant?>(nil)

  /// Whether the last look has succeeded, and not too long ago.
  func isWritable(at now: ContinuousClock.Instant = .now) -> Bool {
    lastSuccess.withLock { $0.map { now - $0 < Self.patience } ?? false }
  }

  /// Looks until the task is cancelled.
  func run(in directory: FilePath) async {
    while !Task.isCancelled {
      await look(in: directory)
      try? await Task.sleep(for: Self.interval)
    }
  }

  /// Looks once.
  func look(in directory: FilePath) async {
    let succeeded = await onBlockingThread("datavault.disk-probe") {
      Self.canWrite(in: directory)
    }
    lastSuccess.withLock { $0 = succeeded ? .now : nil }
  }

  /// Writes to a file without a name, which ends with its descriptor: open(2), `O_TMPFILE`.
  ///
  /// It is not synchronized, and so normally never reaches the disk.
  private static func canWrite(in directory: FilePath) -> Bool {
    let unnamed = FileDescriptor.OpenOptions(rawValue: 0o20_000_000 | O_DIRECTORY)
    do {
      let file = try FileDescriptor.open(
        directory, .writeOnly, options: [unnamed, .closeOnExec], permissions: .ownerReadWrite)
      defer { try? file.close() }
      return try file.writeAll([UInt8](repeating: 0, count: byteCount)) == byteCount
    } catch Errno.notSupported, Errno.isDirectory {
      // The file system has no such files.
      return unsafe access(directory.string, W_OK) == 0
    } catch {
      return false
    }
  }
}
