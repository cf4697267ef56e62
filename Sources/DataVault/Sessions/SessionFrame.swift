internal import FileLayer
internal import VaultCrypto

/// A request on a session socket: `docs/reference/session-socket.md`, "Frames".
struct SessionRequest: ~Copyable {
  enum Kind: UInt8, Sendable {
    case status = 1
    case open
    case end
    case check
  }

  static let maximumByteCount = 6 + 64 + LiveSession.payloadByteCount

  let kind: Kind
  let id: VaultID
  /// The payload of the session that `open` hands over; otherwise empty.
  let payload: SecretBytes

  /// A request without a secret.
  init(_ kind: Kind, _ id: VaultID) {
    self.kind = kind
    self.id = id
    payload = SecretBytes(zeroCount: 0)
  }

  init(opening id: VaultID, payload: borrowing SecretBytes) {
    kind = .open
    self.id = id
    self.payload = payload.copy()
  }

  /// - Returns: nil for a frame that breaks the format.
  init?(parsing frame: borrowing SecretBytes) {
    let text = unsafe frame.withUnsafeBytes { bytes -> (Kind, String)? in
      guard bytes.count >= 6, unsafe bytes.prefix(4).elementsEqual(SessionFrame.mark),
        let kind = unsafe Kind(rawValue: bytes[4])
      else { return nil }
      let idByteCount = unsafe Int(bytes[5])
      let byteCount = 6 + idByteCount + (kind == .open ? LiveSession.payloadByteCount : 0)
      guard bytes.count == byteCount else { return nil }
      return unsafe (kind, String(decoding: bytes[6..<6 + idByteCount], as: UTF8.self))
    }
    guard let (kind, text) = text, let id = try? VaultID(text) else { return nil }
    self.kind = kind
    self.id = id
    payload = frame.copy(6 + text.utf8.count..<frame.byteCount)
  }

  /// The bytes on the socket.
  borrowing func frame() -> SecretBytes {
    let name = Array(id.rawValue.utf8)
    let head = SessionFrame.mark + [kind.rawValue, UInt8(name.count)] + name
    return unsafe SecretBytes(byteCount: head.count + payload.byteCount) { target in
      unsafe target.copyBytes(from: head)
      unsafe payload.withUnsafeBytes {
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[head.count...]).copyMemory(from: $0)
      }
    }
  }
}

/// A reply on a session socket: `docs/reference/session-socket.md`, "Frames".
struct SessionReply: Sendable, Equatable {
  enum Result: UInt8, Sendable {
    case done
    case nothingToDo
    case wrongKey
    case backingOff
    case invalid
    case unreadable
    case failed
  }

  static let byteCount = 34

  let result: Result
  let isServing: Bool
  let processID: Int32
  /// Nanoseconds since 1970.
  let since: Int64
  /// The deadline of the session that the process holds, since boot; zero if it holds none.
  let deadline: Duration
  let retryDelay: Duration

  init(
    _ result: Result, isServing: Bool, processID: Int32, since: Int64, deadline: Duration = .zero,
    retryDelay: Duration = .zero
  ) {
    self.result = result
    self.isServing = isServing
    self.processID = processID
    self.since = since
    self.deadline = deadline
    self.retryDelay = retryDelay
  }

  /// - Returns: nil for a frame that breaks the format.
  init?(parsing frame: borrowing SecretBytes) {
    guard frame.byteCount == Self.byteCount else { return nil }
    let bytes = unsafe frame.withUnsafeBytes { unsafe Array($0) }
    func number(at offset: Int) -> Int64 {
      Int64(
        bitPattern: bytes[offset..<offset + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      )
    }
    guard Array(bytes[0..<4]) == SessionFrame.mark, let result = Result(rawValue: bytes[4]),
      bytes[5] == 1 || bytes[5] == 2, number(at: 18) >= 0, number(at: 26) >= 0
    else { return nil }
    self.result = result
    isServing = bytes[5] == 2
    processID = Int32(truncatingIfNeeded: number(at: 6) & 0xFFFF_FFFF)
    since = number(at: 10)
    deadline = .nanoseconds(number(at: 18))
    retryDelay = .nanoseconds(number(at: 26))
  }

  /// The bytes on the socket; no secret.
  var frame: SecretBytes {
    var bytes = SessionFrame.mark + [result.rawValue, isServing ? 2 : 1]
    for (number, byteCount) in [
      (Int64(processID), 4), (since, 8), (deadline.wholeNanoseconds, 8),
      (retryDelay.wholeNanoseconds, 8),
    ] {
      for index in 0..<byteCount {
        bytes.append(UInt8(truncatingIfNeeded: number >> Int64(8 * index)))
      }
    }
    return SecretBytes(copying: bytes)
  }
}

/// What both frames begin with.
private enum SessionFrame {
  /// The protocol and its version.
  static let mark = Array("DVS1".utf8)
}
