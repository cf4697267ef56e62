internal import FileLayer
internal import Glibc
internal import SystemPackage

/// A file of lines, open for reading or appending, on a thread that can block.
final class ExchangeFile {
  private static let readByteCount = 1 << 18

  let path: FilePath
  private let descriptor: FileDescriptor
  private var buffer: [UInt8] = []
  private var position = 0
  /// The buffer has no newline before this index.
  private var searched = 0
  private var isAtEnd = false

  /// Bytes of the lines that were read.
  private(set) var byteCount = 0

  /// Opens this user's own file, to continue it.
  init(continuing path: FilePath) throws(EngineError) {
    self.path = path
    do throws(FileError) {
      descriptor = try OwnFile.open(path, .contents, for: .write)
    } catch {
      throw EngineError(file: path, error, "cannot be opened")
    }
  }

  /// Opens a regular file: it is read twice, which a pipe does not allow.
  init(regularAt path: FilePath) throws(EngineError) {
    self.path = path
    do {
      descriptor = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking])
    } catch {
      throw EngineError(file: path, error, "cannot be opened")
    }
    guard try status().st_mode & S_IFMT == S_IFREG else {
      throw EngineError(
        .invalidArgument, "\(path) is not a regular file",
        hint: "an import reads its file twice: write the messages to a regular file"
      )
    }
  }

  deinit { try? descriptor.close() }

  /// The status of the open file.
  func status() throws(EngineError) -> stat {
    var status = stat()
    guard unsafe fstat(descriptor.rawValue, &status) == 0 else {
      throw EngineError(file: path, Errno(rawValue: errno), "cannot be examined")
    }
    return status
  }

  /// The result of reading a line.
  enum Reading {
    /// Without its newline.
    case line([UInt8])
    /// The last line has no newline.
    case torn
    case tooLong
    case end
  }

  func next(maximumByteCount: Int) throws(EngineError) -> Reading {
    while true {
      if let newline = buffer[searched...].firstIndex(of: 0x0A) {
        let line = buffer[position..<newline]
        guard line.count <= maximumByteCount else { return .tooLong }
        (position, searched) = (newline + 1, newline + 1)
        byteCount += line.count + 1
        return .line(Array(line))
      }
      searched = buffer.count
      if buffer.count - position > maximumByteCount { return .tooLong }
      if isAtEnd { return position < buffer.count ? .torn : .end }
      try fill()
    }
  }

  private func fill() throws(EngineError) {
    buffer.removeSubrange(..<position)
    searched -= position
    position = 0
    let bytes = try read(upTo: Self.readByteCount)
    buffer += bytes
    isAtEnd = bytes.isEmpty
  }

  /// The next bytes; empty at the end.
  func read(upTo count: Int) throws(EngineError) -> [UInt8] {
    do {
      return try unsafe [UInt8](unsafeUninitializedCapacity: count) { bytes, initializedCount in
        initializedCount = try unsafe descriptor.read(into: UnsafeMutableRawBufferPointer(bytes))
      }
    } catch {
      throw EngineError(file: path, error, "cannot be read")
    }
  }

  /// Rewinds, and hashes the first `byteCount` bytes.
  func digest(ofFirst byteCount: Int) throws(EngineError) -> RunningDigest {
    let digest = RunningDigest()
    var rest = byteCount
    try rewind()
    while rest > 0 {
      let bytes = try read(upTo: min(rest, Self.readByteCount))
      if bytes.isEmpty { break }
      try digest.update(bytes)
      rest -= bytes.count
    }
    return digest
  }

  /// Goes back to the first line.
  func rewind() throws(EngineError) {
    do {
      try descriptor.seek(offset: 0, from: .start)
    } catch {
      throw EngineError(file: path, error, "cannot be read")
    }
    buffer = []
    (position, searched, byteCount, isAtEnd) = (0, 0, 0, false)
  }

  /// Cuts the file off after `byteCount` bytes, to append there.
  func cut(to byteCount: Int) throws(EngineError) {
    do {
      try descriptor.resize(to: Int64(byteCount))
      try descriptor.seek(offset: Int64(byteCount), from: .start)
    } catch {
      throw EngineError(file: path, error, "cannot be written")
    }
  }

  func append(_ bytes: [UInt8]) throws(EngineError) {
    do {
      try descriptor.writeAll(bytes)
    } catch {
      throw EngineError(file: path, error, "cannot be written")
    }
  }

  /// Makes what was written durable.
  func synchronize() throws(EngineError) {
    guard fsync(descriptor.rawValue) == 0 else {
      throw EngineError(file: path, Errno(rawValue: errno), "cannot be synchronized")
    }
  }
}

extension EngineError {
  /// The error for a system call on a file of messages.
  init(file path: FilePath, _ cause: any Error, _ what: String) {
    if let error = cause as? FileError, error.refusal != nil {
      self.init(.foreignFile, error.description, hint: error.hint, underlying: error)
      return
    }
    let errorNumber = cause as? Errno ?? (cause as? FileError)?.errno
    switch errorNumber {
    case .noSpace, .diskQuotaExceeded:
      self.init(
        .diskFull, "\(path) \(what): the disk is full",
        hint: "free some space; the same command continues where it stopped", underlying: cause)
    case .noSuchFileOrDirectory:
      self.init(.fileMissing, "\(path) does not exist", underlying: cause)
    case .some(let errno):
      self.init(.inputOutput, "\(path) \(what): \(errno)", underlying: cause)
    case nil: self.init(.inputOutput, "\(path) \(what)", underlying: cause)
    }
  }
}
