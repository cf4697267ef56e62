import Foundation
@_spi(Testing) import MessagingServer
import NIOCore
import NIOEmbedded

/// Frames of WebSocket clients: of any bytes, and messages in fragments.
///
/// The first byte of the input selects one of these. A reader of frames of its own is the judge
/// (RFC 6455), and the pieces in which the bytes come must not matter.
final class WebSocketFixture {
  private static let messageByteCount = 300
  private static let fragmentCount = 4

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let rest = Array(input.dropFirst())
    var pieces = Pieces(rest)
    let bytes = mode & 1 == 0 ? rest : made(rest, &pieces)
    let judge = WebSocketJudge(
      bytes, messageByteCount: Self.messageByteCount, fragmentCount: Self.fragmentCount)
    check([bytes[...]], judge)
    check(pieces.cut(bytes, largestBitCount: 8), judge)
    if bytes.count <= 512 { check(bytes.indices.map { bytes[$0...$0] }, judge) }
  }

  /// Messages, in as many fragments as they have zeros, with other frames between them.
  private func made(_ input: [UInt8], _ pieces: inout Pieces) -> [UInt8] {
    var bytes: [UInt8] = []
    for message in input.split(separator: 0xFE) {
      let fragments = message.split(separator: 0, omittingEmptySubsequences: false)
      for (index, fragment) in fragments.enumerated() {
        let isLast = index == fragments.count - 1
        let opcode: UInt8 = index == 0 ? 1 + (fragment.first ?? 0) & 1 : 0
        bytes += frame((isLast ? 0x80 : 0) | opcode, Array(fragment), &pieces)
        if pieces.next() & 3 == 0 { bytes += frame(0x89, Array(fragment.prefix(125)), &pieces) }
        if pieces.next() & 15 == 0 { bytes += frame(0x8A, [], &pieces) }
      }
    }
    return bytes
  }

  private func frame(_ first: UInt8, _ payload: [UInt8], _ pieces: inout Pieces) -> [UInt8] {
    let key = (0..<4).map { _ in UInt8(truncatingIfNeeded: pieces.next() >> 16) }
    let length: [UInt8] =
      payload.count < 126
      ? [UInt8(payload.count)] : [126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
    return [first, length[0] | 0x80] + length.dropFirst() + key
      + payload.enumerated().map { $1 ^ key[$0 % 4] }
  }

  /// The session gets the messages, and the client the frames, that the judge finds.
  private func check(_ pieces: [ArraySlice<UInt8>], _ judge: WebSocketJudge) {
    let probe = WebSocketProbe()
    let channel = EmbeddedChannel()
    do {
      try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
      try probe.open(
        channel, messageByteCount: Self.messageByteCount, fragmentCount: Self.fragmentCount)
      for piece in pieces where channel.isActive {
        // It throws what the decoder reports.
        _ = try? channel.writeInbound(ByteBuffer(bytes: piece))
      }
      require(channel.isActive != judge.isClosed, "the connection is open or closed too early")
      channel.embeddedEventLoop.advanceTime(by: TimeAmount(WebSocketProbe.closeTime))
      require(channel.isActive == (judge.closeCode == nil), "a closed connection stays open")
      var sent: [UInt8] = []
      while let bytes = try channel.readOutbound(as: ByteBuffer.self) {
        sent += bytes.readableBytesView
      }
      let frames = WebSocketJudge.ServerFrame.read(sent)
      require(frames == judge.sent, "the client gets \(frames ?? []), not \(judge.sent)")
    } catch {
      require(false, "the channel fails: \(error)")
    }
    _ = try? channel.finish(acceptAlreadyClosed: true)
    require(
      probe.events == judge.messages.map { .message($0) } + [.end],
      "the session is told \(probe.events), not \(judge.messages)")
  }
}

/// What RFC 6455 makes of the bytes of a client, without any of the server's code.
struct WebSocketJudge {
  /// A frame of the server.
  enum ServerFrame: Equatable {
    case text([UInt8]), binary([UInt8]), pong([UInt8])
    /// The reason is for people.
    case close(Int)

    /// The frames in bytes; nil for what no server sends.
    static func read(_ bytes: [UInt8]) -> [ServerFrame]? {
      var frames: [ServerFrame] = []
      var rest = bytes[...]
      while let first = rest.popFirst() {
        guard let length = rest.popFirst(), length != 127 else { return nil }
        var count = Int(length)
        if count == 126 {
          guard rest.count >= 2 else { return nil }
          count = Int(rest.removeFirst()) << 8 | Int(rest.removeFirst())
        }
        guard rest.count >= count else { return nil }
        let payload = Array(rest.prefix(count))
        rest = rest.dropFirst(count)
        switch first {
        case 0x81: frames.append(.text(payload))
        case 0x82: frames.append(.binary(payload))
        case 0x8A where count < 126: frames.append(.pong(payload))
        case 0x88 where (2...125).contains(count) && WebSocketJudge.isText(payload.dropFirst(2)):
          frames.append(.close(Int(payload[0]) << 8 | Int(payload[1])))
        default: return nil
        }
      }
      return frames
    }
  }

  private(set) var messages: [[UInt8]] = []
  private(set) var sent: [ServerFrame] = []
  /// The code of the server's close frame; nil if it sends none.
  private(set) var closeCode: Int?
  /// Whether both have sent a close frame.
  private(set) var isClosed = false
  /// The message whose end has not come.
  private var message: (isText: Bool, bytes: [UInt8], fragmentCount: Int)?

  init(_ bytes: [UInt8], messageByteCount: Int, fragmentCount: Int) {
    var rest = bytes[...]
    while !isClosed, rest.count >= 2 {
      let (first, second) = (rest.removeFirst(), rest.removeFirst())
      var count = UInt64(second & 0x7F)
      if count >= 126 {
        let width = count == 126 ? 2 : 8
        guard rest.count >= width else { return }
        count = rest.prefix(width).reduce(0) { $0 << 8 | UInt64($1) }
        rest = rest.dropFirst(width)
      }
      // What a header says counts before the payload has come, and nothing behind it is read.
      if let code = Self.fault(first, count, messageByteCount) {
        close(code)
        return
      }
      let isMasked = second & 0x80 != 0
      let headCount = isMasked ? 4 : 0
      guard rest.count >= headCount + Int(count) else { return }
      let key = Array(rest.prefix(headCount))
      let payload = rest.dropFirst(headCount).prefix(Int(count)).enumerated().map {
        isMasked ? $1 ^ key[$0 % 4] : $1
      }
      rest = rest.dropFirst(headCount + Int(count))
      take(first, payload, isMasked, messageByteCount, fragmentCount)
    }
  }

  private static func fault(_ first: UInt8, _ count: UInt64, _ messageByteCount: Int) -> Int? {
    if count > UInt64(messageByteCount) { return 1009 }
    let isControl = first & 8 != 0
    return isControl && (first & 0x80 == 0 || count > 125) ? 1002 : nil
  }

  private mutating func close(_ code: Int) {
    guard closeCode == nil else { return }
    closeCode = code
    sent.append(.close(code))
  }

  private mutating func take(
    _ first: UInt8, _ payload: [UInt8], _ isMasked: Bool, _ byteCount: Int, _ fragmentCount: Int
  ) {
    let opcode = first & 0x0F
    if closeCode != nil {
      isClosed = opcode == 8
      return
    }
    guard isMasked, first & 0x70 == 0 else { return close(1002) }
    switch opcode {
    case 0, 1, 2: take(opcode, payload, isLast: first & 0x80 != 0, byteCount, fragmentCount)
    case 8: close(Self.answer(to: payload))
    case 9: sent.append(.pong(payload))
    case 10: break
    default: close(1002)
    }
  }

  private mutating func take(
    _ opcode: UInt8, _ payload: [UInt8], isLast: Bool, _ byteCount: Int, _ fragmentCount: Int
  ) {
    guard (opcode == 0) == (message != nil) else { return close(1002) }
    var whole = message ?? (opcode == 1, [], 0)
    whole.bytes += payload
    whole.fragmentCount += 1
    guard whole.bytes.count <= byteCount, whole.fragmentCount <= fragmentCount else {
      return close(1009)
    }
    message = isLast ? nil : whole
    guard isLast else { return }
    guard !whole.isText || Self.isText(whole.bytes) else { return close(1007) }
    messages.append(whole.bytes)
    // The session answers with the message itself.
    sent.append(Self.isText(whole.bytes) ? .text(whole.bytes) : .binary(whole.bytes))
  }

  /// The code that answers a close frame: RFC 6455, 5.5.1 and 7.4.
  private static func answer(to payload: [UInt8]) -> Int {
    guard !payload.isEmpty else { return 1000 }
    guard payload.count > 1 else { return 1002 }
    let code = Int(payload[0]) << 8 | Int(payload[1])
    guard
      [1000, 1001, 1002, 1003].contains(code) || (1007...1014).contains(code)
        || (3000...4999).contains(code)
    else { return 1002 }
    return isText(payload[2...]) ? code : 1007
  }

  static func isText(_ bytes: some Sequence<UInt8>) -> Bool {
    String(validating: Array(bytes), as: UTF8.self) != nil
  }
}
