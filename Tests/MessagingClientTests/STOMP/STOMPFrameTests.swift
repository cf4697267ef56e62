import NIOCore
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

/// Frames and bytes, written by hand from https://stomp.github.io/stomp-specification-1.2.html.
@Suite struct STOMPFrameTests {
  static let frames: [(text: String, frame: STOMPFrame)] = [
    (
      "CONNECTED\nversion:1.2\n\n\0",
      STOMPFrame("CONNECTED", [("version", "1.2")])
    ),
    (
      "SEND\ndestination:/queue/a\ncontent-type:text/plain\n\nhello queue a\n\0",
      STOMPFrame(
        "SEND", [("destination", "/queue/a"), ("content-type", "text/plain")],
        body: Array("hello queue a\n".utf8))
    ),
    (
      "SUBSCRIBE\nid:0\ndestination:/queue/foo\nack:client\n\n\0",
      STOMPFrame("SUBSCRIBE", [("id", "0"), ("destination", "/queue/foo"), ("ack", "client")])
    ),
    (
      "MESSAGE\nsubscription:0\nmessage-id:007\ncontent-length:3\n\na\0b\0",
      STOMPFrame(
        "MESSAGE", [("subscription", "0"), ("message-id", "007"), ("content-length", "3")],
        body: [0x61, 0, 0x62])
    ),
    (
      "MESSAGE\na\\cb:c\\\\d\\ne\\r\\c\n\n\0",
      STOMPFrame("MESSAGE", [("a:b", "c\\d\ne\r:")])
    ),
    ("MESSAGE\nempty:\n\n\0", STOMPFrame("MESSAGE", [("empty", "")])),
    // CONNECTED has no escapes, for the servers of 1.0.
    ("CONNECTED\nserver:a\\c:b\n\n\0", STOMPFrame("CONNECTED", [("server", "a\\c:b")])),
    (
      "MESSAGE\nfoo:World\nfoo:Hello\n\n\0",
      STOMPFrame("MESSAGE", [("foo", "World"), ("foo", "Hello")])
    ),
    (
      "MESSAGE\ngrün:größer ✓\n\n✓\0",
      STOMPFrame("MESSAGE", [("grün", "größer ✓")], body: Array("✓".utf8))
    ),
  ]

  @Test(arguments: frames)
  func `a frame of the specification is read and written`(text: String, frame: STOMPFrame) throws {
    #expect(try decode(Array(text.utf8)) == [frame])
    #expect(try bytes(of: frame.encoded()) == Array(text.utf8))
  }

  static let variants: [(text: String, frames: [STOMPFrame])] = [
    ("\n\r\n\nRECEIPT\nreceipt-id:1\n\n\0\n\n", [STOMPFrame("RECEIPT", [("receipt-id", "1")])]),
    ("RECEIPT\r\nreceipt-id:1\r\n\r\n\0", [STOMPFrame("RECEIPT", [("receipt-id", "1")])]),
    ("A\n\n\0B\n\n\0\nC\n\n\0", [STOMPFrame("A"), STOMPFrame("B"), STOMPFrame("C")]),
    ("A\ncontent-length:0\n\n\0", [STOMPFrame("A", [("content-length", "0")])]),
    ("A\n a : b \n\n\0", [STOMPFrame("A", [(" a ", " b ")])]),
    ("A\na:b:c\n\n\0", [STOMPFrame("A", [("a", "b:c")])]),
    ("A\na:b\n", []),
  ]

  @Test(arguments: variants, [1, 2, 7, 1000])
  func `frames are read however they are fragmented`(
    _ variant: (text: String, frames: [STOMPFrame]), size: Int
  ) throws {
    #expect(try decode(Array(variant.text.utf8), pieces: size) == variant.frames)
  }

  @Test func `the first of repeated headers counts`() {
    let frame = STOMPFrame("MESSAGE", [("foo", "World"), ("foo", "Hello")])
    #expect(frame["foo"] == "World")
    #expect(frame["bar"] == nil)
  }

  static let faults: [(bytes: [UInt8], message: String)] = [
    (Array("A\nno colon\n\n\0".utf8), "a header has no name, or no colon"),
    (Array("A\n:value\n\n\0".utf8), "a header has no name, or no colon"),
    (Array("A\na:\\t\n\n\0".utf8), "a header has an unknown escape"),
    (Array("A\na:b\\\n\n\0".utf8), "a header has an unknown escape"),
    (Array("A\na:b\0".utf8), "the frame ends in its headers"),
    (Array("AB\0".utf8), "the frame ends in its headers"),
    ([0], "the frame ends in its command"),
    (Array("A\ncontent-length:-1\n\n\0".utf8), "the content-length is not a number"),
    (Array("A\ncontent-length:\n\n\0".utf8), "the content-length is not a number"),
    (
      Array("A\ncontent-length:99999999999999999999\n\n".utf8), "the content-length is not a number"
    ),
    (Array("A\ncontent-length:1 \n\n\0".utf8), "the content-length is not a number"),
    (Array("A\ncontent-length:101\n\n".utf8), "the body is larger than 100 bytes"),
    (Array("A\ncontent-length:1\n\nab\0".utf8), "the body is longer than its content-length"),
    (Array("A\n\n".utf8) + [UInt8](repeating: 1, count: 101), "the body is larger than 100 bytes"),
    (Array("A\na:\u{FF}".utf8) + [0xFF, 0x0A], "a line is not UTF-8"),
    ([0xC3, 0x28, 0x0A], "a line is not UTF-8"),
    ([UInt8](repeating: 0x41, count: 33), "the command is too long"),
    (Array("A\n".utf8) + [UInt8](repeating: 0x61, count: 51), "the headers are too long"),
    (Array("A\na:1\nb:2\nc:3\nd:4\n".utf8), "the frame has more than 3 headers"),
    (
      Array("A\n".utf8)
        + Array(String(repeating: "a:\(String(repeating: "b", count: 45))\n", count: 3).utf8),
      "the headers are too long"
    ),
  ]

  private static let limits: STOMPFrameLimits = {
    var limits = STOMPFrameLimits()
    limits.headerCount = 3
    limits.lineByteCount = 50
    limits.headerByteCount = 120
    limits.bodyByteCount = 100
    return limits
  }()

  @Test(arguments: faults, [1, 1000])
  func `bytes that are no frame are refused`(
    _ fault: (bytes: [UInt8], message: String), size: Int
  ) throws {
    #expect(throws: STOMPFault(fault.message)) {
      try decode(fault.bytes, pieces: size, Self.limits)
    }
  }

  @Test(arguments: [
    STOMPFrame("SEND", [("", "b")]), STOMPFrame("SEND", [("a\0", "b")]),
    STOMPFrame("SEND", [("a", "\0")]), STOMPFrame("CONNECT", [("host", "a\nlogin:b")]),
    STOMPFrame("CONNECT", [("host", "a\r")]), STOMPFrame("CONNECT", [("a:b", "c")]),
  ])
  func `a header that no frame can have is refused`(_ frame: STOMPFrame) {
    let error = #expect(throws: MessagingClientError.self) { try frame.encoded() }
    #expect(error?.code == .invalidArgument)
  }

  @Test func `the passcode is written last, and cannot add a header`() throws {
    let frame = STOMPFrame("CONNECT", [("host", "shop")])
    let good = SecretText(SharedSecret(secret("pass:word")))
    #expect(
      try bytes(of: frame.encoded(secrets: [("login", "anna"), ("passcode", good)]))
        == Array("CONNECT\nhost:shop\nlogin:anna\npasscode:pass:word\n\n\0".utf8))
    let bad = SecretText(SharedSecret(secret("a\nhost:other")))
    #expect(throws: MessagingClientError.self) { try frame.encoded(secrets: [("passcode", bad)]) }
  }

  @Test func `changed bytes never make the decoder keep more than its limits`() throws {
    var random = SeededRandom(seed: 12)
    let alphabet = Array("\n\r\0:\\cnr19aA".utf8) + [0xC3, 0xFF]
    let whole = Self.frames.flatMap { Array($0.text.utf8) }
    for _ in 0..<2_000 {
      var bytes = whole
      for _ in 0...random.next(8) {
        let place = random.next(bytes.count)
        switch random.next(3) {
        case 0: bytes[place] = alphabet[random.next(alphabet.count)]
        case 1: bytes.remove(at: place)
        default: bytes.insert(alphabet[random.next(alphabet.count)], at: place)
        }
      }
      let size = 1 + random.next(40)
      let (first, second) = (outcome(bytes, size), outcome(bytes, bytes.count))
      // The fragments make no difference.
      #expect(first == second)
      for frame in first.frames {
        #expect(frame.headers.count <= Self.limits.headerCount)
        #expect(frame.body.count <= Self.limits.bodyByteCount)
        // What is read can be written, and read again.
        if let encoded = try? frame.encoded() {
          #expect(try isRead(MessagingClientTests.bytes(of: encoded), as: frame))
        }
      }
    }
  }

  private struct Outcome: Equatable {
    var frames: [STOMPFrame] = []
    var fault: STOMPFault?
  }

  private func outcome(_ bytes: [UInt8], _ size: Int) -> Outcome {
    var decoder = STOMPDecoder(Self.limits)
    var outcome = Outcome()
    var position = 0
    while position < bytes.count {
      var rest = bytes[position..<min(position + size, bytes.count)]
      position += size
      do throws(STOMPFault) {
        while !rest.isEmpty {
          if let frame = try decoder.next(&rest) { outcome.frames.append(frame) }
        }
      } catch {
        outcome.fault = error
        return outcome
      }
    }
    return outcome
  }

  /// Whether bytes are the frame; a body that has lost its length can end at a NUL.
  private func isRead(_ bytes: [UInt8], as frame: STOMPFrame) throws -> Bool {
    if frame.body.contains(0), frame["content-length"] == nil { return true }
    return try decode(bytes).first == frame
  }
}

func decode(
  _ bytes: [UInt8], pieces size: Int = .max, _ limits: STOMPFrameLimits = STOMPFrameLimits()
) throws -> [STOMPFrame] {
  var decoder = STOMPDecoder(limits)
  var frames: [STOMPFrame] = []
  for start in stride(from: 0, to: bytes.count, by: min(size, max(bytes.count, 1))) {
    var rest = bytes[start..<min(start + min(size, bytes.count), bytes.count)]
    while !rest.isEmpty {
      if let frame = try decoder.next(&rest) { frames.append(frame) }
    }
  }
  return frames
}

func bytes(of frame: EncodedSTOMPFrame) -> [UInt8] {
  var buffer = ByteBuffer()
  frame.write(to: &buffer)
  return Array(buffer.readableBytesView)
}
