import AccessControl
import Testing
import VaultCrypto

@Suite struct NameTests {
  @Test(arguments: ["shop", "a", "0-9", String(repeating: "x", count: 32)])
  func `an application takes a name of a-z, 0-9 and -`(name: String) throws {
    _ = try made(name: name)
  }

  @Test(arguments: ["", "Shop", "sh_op", "größe", "a/b", String(repeating: "x", count: 33)])
  func `an application refuses another name`(name: String) {
    let error = #expect(throws: AccessError.self) { try made(name: name) }
    #expect(error?.code == .invalidApplication)
  }

  @Test(arguments: ["", "a/b", "a b", "é", "a.b", String(repeating: "k", count: 129)])
  func `an application refuses a key that a path cannot hold as it is`(key: String) {
    #expect(throws: AccessError.self) { try made(key: key) }
  }

  @Test func `an application id is positive`() {
    #expect(throws: AccessError.self) { try ApplicationID(0) }
  }

  private func made(name: String = "shop", key: String = "sub-c-1") throws -> Application {
    try Application(
      id: shop, name: name, publishKey: "pub-c-1", subscribeKey: key,
      secretKey: SecretKey(SecretBytes(copying: [1])))
  }

  @Test func `a channel name has at most 200 bytes`() throws {
    #expect(try ChannelName(String(repeating: "é", count: 100)).text.utf8.count == 200)
    #expect(throws: AccessError.self) { try ChannelName(String(repeating: "é", count: 100) + "x") }
  }

  @Test(arguments: ["", "a/b", "/", "a\u{0}", "a\n", "a\u{7F}"])
  func `a channel name has neither a slash nor a control character`(name: String) {
    let error = #expect(throws: AccessError.self) { try ChannelName(name) }
    #expect(error?.code == .invalidName)
    #expect(error?.hint != nil)
  }

  @Test func `two spellings of a letter are two channels`() throws {
    let composed = try ChannelName("caf\u{E9}")
    let decomposed = try ChannelName("cafe\u{301}")
    #expect(composed.text == decomposed.text)
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed]).count == 2)
  }

  @Test(arguments: [
    "a-pnpres", "-pnpres", "pusher:", "pusher:x", "pusher_internal:x", "datavault:x", "a.*-pnpres",
  ])
  func `a reserved name is recognised`(name: String) throws {
    #expect(try ChannelName(name).isReserved)
  }

  @Test(arguments: ["pnpres", "a-pnpres2", "pusher", "a-pusher:", "Pusher:x", "datavault"])
  func `a name beside a reserved one is free`(name: String) throws {
    #expect(try !ChannelName(name).isReserved)
  }

  @Test(arguments: [
    ("a.b", "a.*"), ("a.b.c", "a.*"), ("a.*", "a.*"), ("a.b.*", "a.*"),
    ("a.b-pnpres", "a.*-pnpres"),
    ("é.b", "é.*"),
  ])
  func `the first part of a name decides which pattern covers it`(name: String, pattern: String)
    throws
  {
    #expect(try ChannelName(name).coveringPattern?.text == pattern)
  }

  @Test(arguments: ["a", ".b", "a-pnpres"])
  func `a name without a first part has no pattern`(name: String) throws {
    #expect(try ChannelName(name).coveringPattern == nil)
  }

  @Test func `an auth key has another hash in another application and under another key`() throws {
    #expect(hash("k") == hash("k"))
    #expect(hash("k") != hash("k", of: bank))
    #expect(hash("k") != hash("l"))
    let other = AuthKeyHasher(key: SecretBytes(copying: [UInt8](repeating: 8, count: 32)))
    #expect(try hash("k") != other.hash(Array("k".utf8), of: shop))
    #expect(AuthKeyHash(stored: hash("k").bytes) == hash("k"))
    #expect(AuthKeyHash(stored: [1]) == nil)
  }

  @Test func `the hash of an auth key is that of OpenSSL over the id and the key`() throws {
    let message: [UInt8] = [0, 0, 0, 0, 0, 0, 4, 18] + Array("k".utf8)
    let key = SecretBytes(copying: [UInt8](repeating: 7, count: 32))
    #expect(try hash("k").bytes == HMAC.sha256(key: key, message: message.span.bytes))
  }
}
