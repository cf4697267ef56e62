import TestSupport
import Testing

@testable import MessagingServer

@Suite struct STOMPCodecTests {
  /// The frames of some bytes, which come in pieces of this size.
  private func frames(
    _ bytes: [UInt8], _ version: STOMPVersion? = .v12, pieces: Int = 1_000_000,
    _ limits: STOMPFrameLimits = STOMPFrameLimits()
  ) throws(STOMPFault) -> [STOMPFrame] {
    var decoder = STOMPDecoder(limits)
    decoder.version = version
    var frames: [STOMPFrame] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      var piece = rest.prefix(pieces)
      rest = rest.dropFirst(pieces)
      while !piece.isEmpty {
        if let frame = try decoder.next(&piece) { frames.append(frame) }
      }
    }
    return frames
  }

  private func frames(
    _ text: String, _ version: STOMPVersion? = .v12, pieces: Int = 1_000_000,
    _ limits: STOMPFrameLimits = STOMPFrameLimits()
  ) throws(STOMPFault) -> [STOMPFrame] {
    try frames(Array(text.utf8), version, pieces: pieces, limits)
  }

  @Test(arguments: [1, 2, 3, 7, 1000])
  func `frames are the same however they are fragmented`(pieces: Int) throws {
    let text =
      "\n\r\nSEND\r\ndestination:/queue/a\r\ncontent-length:3\r\n\r\na\0b\0\n\nACK\nid:1\nid:2\n\n\0"
    let found = try frames(text, pieces: pieces)
    #expect(found.map(\.command) == ["SEND", "ACK"])
    #expect(found[0].body == [0x61, 0, 0x62])
    #expect(found[0]["destination"] == "/queue/a")
    // The first of repeated headers counts.
    #expect(found[1]["id"] == "1")
  }

  @Test func `each version has its own escapes`() throws {
    let text = "SEND\na\\cb:x\\n\\\\y\n\n\0"
    #expect(try frames(text, .v12)[0]["a:b"] == "x\n\\y")
    #expect(try frames(text, .v11)[0]["a:b"] == "x\n\\y")
    #expect(try frames(text, .v10)[0]["a\\cb"] == "x\\n\\\\y")
    #expect(try frames("SEND\na:\\r\n\n\0", .v12)[0]["a"] == "\r")
    #expect(throws: STOMPFault.self) { try frames("SEND\na:\\r\n\n\0", .v11) }
    #expect(throws: STOMPFault.self) { try frames("SEND\na:\\t\n\n\0", .v12) }
    #expect(throws: STOMPFault.self) { try frames("SEND\na:\\\n\n\0", .v12) }
    // CONNECT has none in any version.
    #expect(try frames("CONNECT\na:\\t\n\n\0", .v12)[0]["a"] == "\\t")
    #expect(try frames("SEND\na: b\n\n\0", .v10)[0]["a"] == "b")
    #expect(throws: STOMPFault.self) { try frames("SEND\na: b\r\n\n\0", .v11) }
  }

  @Test(arguments: STOMPVersion.allCases, ["SEND\na:b\rc\n\n\0", "SE\rND\n\n\0", "SEND\n\r\r\n\0"])
  func `a carriage return that does not end its line is refused`(
    version: STOMPVersion, text: String
  ) {
    #expect(throws: STOMPFault.self) { try frames(text, version) }
  }

  @Test(arguments: STOMPVersion.allCases)
  func `what is encoded is decoded as it was`(version: STOMPVersion) throws {
    var frame = STOMPFrame("MESSAGE", [("a", "b:c"), ("d", "")], body: [0, 1, 255])
    if version > .v10 { frame.append("x:\\\n", "y\n\\:z") }
    if version == .v12 { frame.append("r", "\r") }
    frame.append("content-length", "3")
    #expect(try frames(frame.encoded(version), version) == [frame])
  }

  @Test func `a header that a version cannot express is left out`() throws {
    let frame = STOMPFrame("MESSAGE", [("a", "b\nc:d"), ("e:f", "g"), ("h", "i\0"), ("j", "k\r")])
    #expect(try frames(frame.encoded(.v10), .v10) == [STOMPFrame("MESSAGE")])
    let names = try frames(frame.encoded(.v11), .v11)[0].headers.map(\.name)
    #expect(names == ["a", "e:f"])
  }

  @Test(arguments: [
    "\(String(repeating: "A", count: 33))\n\n\0",
    "SEND\n\(String(repeating: "a:b\n", count: 101))\n\0",
    "SEND\na:\(String(repeating: "b", count: 16 << 10))\n\n\0",
    "SEND\n\n\(String(repeating: "b", count: (256 << 10) + 1))\0",
    "SEND\ncontent-length:262145\n\n", "SEND\ncontent-length:-1\n\n",
    "SEND\ncontent-length:99999999999999999999\n\n", "SEND\ncontent-length:1\n\nab\0",
    "SEND\nno colon\n\n\0", "SEND\n:b\n\n\0", "SEND\0\0\n\0",
  ])
  func `what is too large or broken is refused`(text: String) {
    for pieces in [1, 1_000_000] {
      #expect(throws: STOMPFault.self) { try frames(text, pieces: pieces) }
    }
  }

  @Test func `a header that is not UTF-8 is refused`() {
    #expect(throws: STOMPFault.self) {
      try frames(Array("SEND\na:".utf8) + [0xFF] + Array("\n\n\0".utf8))
    }
  }

  @Test func `random bytes end in frames or a fault`() {
    var random = SeededRandom(seed: 19)
    let parts = ["SEND\n", "a:b\n", "\n", "\0", "\\", "content-length:4\n", ":", "\r\n", "xyz"]
    for _ in 0..<2000 {
      var text = ""
      for _ in 0..<Int.random(in: 1...12, using: &random) {
        text += parts.randomElement(using: &random) ?? ""
      }
      let whole = try? frames(text)
      let pieces = try? frames(text, pieces: 1)
      #expect(whole == pieces)
    }
  }

  @Test func `the newest version that both have is chosen`() {
    #expect(STOMPVersion.newest(of: nil) == .v10)
    #expect(STOMPVersion.newest(of: "1.0,1.1,1.2") == .v12)
    #expect(STOMPVersion.newest(of: "1.1, 1.0") == .v11)
    #expect(STOMPVersion.newest(of: "1.3,2.0") == nil)
  }
}
