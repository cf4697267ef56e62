internal import FileLayer
internal import VaultCrypto

/// A request on a session socket: `docs/reference/session-socket.md`, "Frames".
struct SessionRequest: ~Copyable {
  enum Kind: UInt8, Sendable {
    case status = 1
    case open
    case end
    case check
    case endAll
  }

  static let maximumByteCount = 6 + 64 + LiveSession.payloadByteCount

  let kind: Kind
  /// Nil for `endAll`, which is for every vault.
  let id: VaultID?
  /// The payload of the session that `open` hands over; otherwise empty.
  let payload: SecretBytes

  /// A request without a secret.
  init(_ kind: Kind, _ id: VaultID?) {
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
    guard let (kind, text) = text else { return nil }
    let id = try? VaultID(text)
    guard kind == .endAll ? text.isEmpty : id != nil else { return nil }
    self.kind = kind
    self.id = id
    payload = frame.copy(6 + text.utf8.count..<frame.byteCount)
  }

  /// The bytes on the socket.
  borrowing func frame() -> SecretBytes {
    let name = Array((id?.rawValue ?? "").utf8)
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

  /// What a process does with the messages of the home.
  enum Activity: UInt8, Sendable {
    /// It waits for an unlock.
    case waiting = 1
    /// It serves until the session ends.
    case serving
    /// It serves, and the end of a session does not end that.
    case servingWithoutSession
  }

  let result: Result
  let activity: Activity
  let processID: Int32
  /// Nanoseconds since 1970.
  let since: Int64
  /// The deadline of the session that the process holds, since boot; zero if it holds none.
  let deadline: Duration
  let retryDelay: Duration

  init(
    _ result: Result, _ activity: Activity, processID: Int32, since: Int64,
    deadline: Duration = .zero,
    retryDelay: Duration = .zero
  ) {
    self.result = result
    self.activity = activity
    self.processID = processID
    self.since = since
    self.deadline = deadline
    self.retryDelay = retryDelay
  }

  /// - Returns: nil for a frame that breaks the format.
  init?(parsing frame: borrowing SecretBytes) {
    guard frame.byteCount == Self.byteCount else { return nil }
    var rest = unsafe frame.withUnsafeBytes { unsafe Array($0) }[...]
    let mark = rest.prefix(4)
    rest.removeFirst(4)
    let result = Result(rawValue: rest.removeNumber())
    let activity = Activity(rawValue: rest.removeNumber())
    processID = rest.removeNumber()
    since = rest.removeNumber()
    let (deadline, retryDelay) = (rest.removeNumber(Int64.self), rest.removeNumber(Int64.self))
    guard Array(mark) == SessionFrame.mark, let result, let activity, deadline >= 0,
      retryDelay >= 0
    else { return nil }
    self.result = result
    self.activity = activity
    self.deadline = .nanoseconds(deadline)
    self.retryDelay = .nanoseconds(retryDelay)
  }

  /// The bytes on the socket; no secret.
  var frame: SecretBytes {
    var bytes = SessionFrame.mark + [result.rawValue, activity.rawValue]
    bytes.append(number: processID)
    bytes.append(number: since)
    bytes.append(number: deadline.wholeNanoseconds)
    bytes.append(number: retryDelay.wholeNanoseconds)
    return SecretBytes(copying: bytes)
  }
}

extension ArraySlice<UInt8> {
  /// Removes a little-endian number from the beginning.
  fileprivate mutating func removeNumber<Number: FixedWidthInteger>(
    _: Number.Type = Number.self
  ) -> Number {
    let bytes = prefix(Number.bitWidth / 8)
    removeFirst(bytes.count)
    return bytes.reversed().reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
  }
}

extension [UInt8] {
  /// Appends a little-endian number.
  fileprivate mutating func append(number: some FixedWidthInteger) {
    unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append(contentsOf: $0) }
  }
}

/// What both frames begin with.
private enum SessionFrame {
  /// The protocol and its version.
  static let mark = Array("DVS1".utf8)
}
