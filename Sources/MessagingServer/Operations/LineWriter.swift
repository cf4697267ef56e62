internal import Dispatch
internal import FileLayer
internal import Glibc
internal import Synchronization
package import SystemPackage

/// Writes lines on a thread of its own, so that an event loop waits neither for a disk nor for a reader.
///
/// Lines wait in memory up to a bound. Beyond it they are dropped, and the next line that is taken says how many.
package final class LineWriter: Sendable {
  private struct State {
    var waiting: [UInt8] = []
    var droppedCount = 0
    var isWriting = false
    var descriptor: FileDescriptor
    /// Called in order when everything before them is written.
    var flushes: [@Sendable () -> Void] = []

    /// Whether the caller must start the thread.
    mutating func start() -> Bool {
      defer { isWriting = true }
      return !isWriting
    }

    /// What is to be written next; nil if there is nothing, and the thread ends.
    mutating func take() -> ([UInt8], FileDescriptor, [@Sendable () -> Void])? {
      guard !waiting.isEmpty || !flushes.isEmpty else {
        isWriting = false
        return nil
      }
      defer { (waiting, flushes) = ([], []) }
      return (waiting, descriptor, flushes)
    }
  }

  private let state: Mutex<State>
  private let queue = DispatchQueue(label: "datavault.lines")
  private let maximumByteCount: Int
  private let format: LogFormat
  /// Nil for a descriptor of the process.
  private let path: FilePath?

  /// Writes to a descriptor that stays open.
  ///
  /// - Parameters:
  ///   - format: that of its lines. Default: text.
  ///   - maximumByteCount: the bytes that can wait. Default: 4 MiB.
  package init(
    _ descriptor: FileDescriptor, _ format: LogFormat = .text, maximumByteCount: Int = 4 << 20
  ) {
    state = Mutex(State(descriptor: descriptor))
    self.format = format
    path = nil
    self.maximumByteCount = maximumByteCount
  }

  /// Appends to a file, which gets mode 0600 if it is new.
  ///
  /// - Throws: `Errno` if it cannot be opened.
  package init(
    _ path: FilePath, _ format: LogFormat = .text, maximumByteCount: Int = 4 << 20
  ) throws(Errno) {
    state = Mutex(State(descriptor: try Self.open(path)))
    self.format = format
    self.path = path
    self.maximumByteCount = maximumByteCount
  }

  deinit { if path != nil { try? state.withLock { $0.descriptor }.close() } }

  /// Takes a line, without its end; returns immediately.
  package func write(_ line: String) {
    let mustStart = state.withLock { state in
      guard state.waiting.count + line.utf8.count < maximumByteCount else {
        state.droppedCount += 1
        return false
      }
      if state.droppedCount > 0 {
        state.waiting += Array(format.line(ofDropped: state.droppedCount).utf8)
        state.droppedCount = 0
      }
      state.waiting += Array(line.utf8)
      state.waiting.append(UInt8(ascii: "\n"))
      return state.start()
    }
    if mustStart { queue.async { self.drain() } }
  }

  /// Returns when the lines so far are written, or after a time if their reader does not read.
  ///
  /// - Parameter limit: default: 1 second.
  package func flush(within limit: Duration = .seconds(1)) async {
    _ = await completes(within: limit) {
      await withCheckedContinuation { continuation in
        let mustStart = self.state.withLock { state in
          state.flushes.append { continuation.resume() }
          return state.start()
        }
        if mustStart { self.queue.async { self.drain() } }
      }
    }
  }

  /// Opens the file again, whose name a rotation of logs has taken away; for a descriptor it does nothing.
  ///
  /// - Throws: `Errno`; lines then still go to the former file.
  package func reopen() async throws(Errno) {
    guard let path else { return }
    let descriptor = try await onBlockingThread("datavault.lines.open") { () throws(Errno) in
      try Self.open(path)
    }
    let former = state.withLock { state in
      defer { state.descriptor = descriptor }
      return state.descriptor
    }
    // Behind the write under way, which uses it.
    queue.async { try? former.close() }
  }

  private static func open(_ path: FilePath) throws(Errno) -> FileDescriptor {
    do {
      // A named pipe without a reader is an error: to wait for one would hold up a start, a rotation and a stop.
      let descriptor = try FileDescriptor.open(
        path, .writeOnly, options: [.append, .create, .closeOnExec, .noFollow, .nonBlocking],
        permissions: .ownerReadWrite)
      _ = fcntl(descriptor.rawValue, F_SETFL, O_APPEND)
      return descriptor
    } catch {
      throw error as? Errno ?? .ioError
    }
  }

  private func drain() {
    while let (bytes, descriptor, flushes) = state.withLock({ $0.take() }) {
      // A line that cannot be written cannot be reported anywhere.
      _ = try? descriptor.writeAll(bytes)
      for flush in flushes { flush() }
    }
  }
}

extension LogFormat {
  fileprivate func line(ofDropped count: Int) -> String {
    self == .json ? "{\"droppedLines\":\(count)}\n" : "\(count) lines were dropped\n"
  }
}
