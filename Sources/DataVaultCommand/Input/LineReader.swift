internal import CommandInterface
internal import FileLayer
internal import Glibc

/// Reads a descriptor line by line, byte for byte, without the newlines.
///
/// Its buffer holds at most one line and one read.
struct LineReader {
  enum Event {
    case line([UInt8])
    /// No input arrived within the caller's timeout.
    case pause
    /// The line is longer than the limit. Its rest is not read, and no further line can be read.
    case tooLong
    case end
  }

  private let descriptor: Int32
  private let maximumLineByteCount: Int
  private var buffer: [UInt8] = []
  private var position = 0
  /// The position up to which the buffer is known to contain no newline.
  private var searched = 0
  private var isAtEnd = false

  init(descriptor: Int32, maximumLineByteCount: Int) {
    self.descriptor = descriptor
    self.maximumLineByteCount = maximumLineByteCount
  }

  /// Reads the next line.
  ///
  /// A last line without a newline counts as a line.
  ///
  /// - Parameter timeout: how long to wait for input before `pause` is returned; nil waits
  ///   without a limit.
  mutating func next(timeout: Duration? = nil) throws(CommandFailure) -> Event {
    while true {
      if let newline = buffer[searched...].firstIndex(of: 0x0A) {
        defer { (position, searched) = (newline + 1, newline + 1) }
        return event(of: buffer[position..<newline])
      }
      searched = buffer.count
      if buffer.count - position > maximumLineByteCount { return .tooLong }
      if isAtEnd {
        defer { position = buffer.count }
        return position < buffer.count ? event(of: buffer[position...]) : .end
      }
      if let timeout, !hasInput(within: timeout) { return .pause }
      try fill()
    }
  }

  private func event(of line: ArraySlice<UInt8>) -> Event {
    line.count > maximumLineByteCount ? .tooLong : .line(Array(line))
  }

  private func hasInput(within timeout: Duration) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    let milliseconds = Int32(clamping: timeout.wholeNanoseconds / 1_000_000)
    // An error or an interruption counts as input: the following read reports it.
    return unsafe poll(&entry, 1, milliseconds) != 0
  }

  private mutating func fill() throws(CommandFailure) {
    buffer.removeSubrange(..<position)
    searched -= position
    position = 0
    var (count, errorNumber) = (0, CInt(0))
    buffer += unsafe [UInt8](unsafeUninitializedCapacity: 1 << 16) { piece, filledCount in
      count = unsafe read(descriptor, piece.baseAddress, piece.count)
      errorNumber = errno
      filledCount = max(count, 0)
    }
    if count < 0, errorNumber == EAGAIN {
      _ = hasInput(within: .seconds(3600))
    } else if count < 0, errorNumber != EINTR {
      throw CommandFailure(
        .inputOutput, "standard input cannot be read: \(systemMessage(errorNumber))")
    }
    isAtEnd = count == 0
  }
}
