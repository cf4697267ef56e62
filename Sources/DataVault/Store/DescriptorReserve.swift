internal import FileLayer
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// Holds the descriptors that recording an attempt needs, until it is recorded.
///
/// Without it, other threads could take the last descriptors while the attempt is evaluated.
final class DescriptorReserve: Sendable {
  /// For the vault's lock, a file beside it, and the connection of a store on the session bus.
  private static let count = 4
  /// How many must be free besides: for the lock of attempts, for files that are read, and for libdispatch, which
  /// ends the process if it cannot open one.
  private static let spareCount = 4

  private let numbers: Mutex<[Int32]>

  /// - Throws: if this process, or the system, can open no more files.
  init() throws(FileError) {
    var opened: [Int32] = []
    for _ in 0..<Self.count + Self.spareCount {
      let number = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
      if number >= 0 {
        opened.append(number)
        continue
      }
      let error = FileError(.read, "/dev/null", Errno(rawValue: errno))
      // A sandbox without the device shows nothing about limits.
      guard error.isResourceLimit else { break }
      for number in opened { _ = Glibc.close(number) }
      throw error
    }
    for number in opened.dropFirst(Self.count) { _ = Glibc.close(number) }
    numbers = Mutex(Array(opened.prefix(Self.count)))
  }

  /// Closes the descriptors; a second call does nothing.
  func close() {
    let numbers = numbers.withLock { numbers in
      defer { numbers = [] }
      return numbers
    }
    for number in numbers { _ = Glibc.close(number) }
  }

  deinit { close() }
}

extension FileError {
  /// Whether a limit of this process, or of the system, is the cause.
  var isResourceLimit: Bool {
    [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory].contains(errno)
  }
}
