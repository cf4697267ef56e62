import TestSupport
import Testing
import VaultCrypto

@testable import DataVault

/// Wycheproof's cases of JSON Web Encryption.
///
/// Of its 139 cases, 88 have RSA or elliptic curve keys and are left out, because no slot has such
/// a key. Of the other 51, one has the algorithms of a vault, A256KW and A256GCM. None has PBES2
/// (RFC 7520 has), and the one with `dir` has a key of 128 bits. The reader must refuse all but
/// that one, valid or not.
@Suite struct JWEVectorTests {
  @Test func `no case is missing`() {
    #expect(JWEVector.wycheproof.count == 51)
    #expect(JWEVector.all.count == 52)
    #expect(JWEVector.wycheproof.count { $0.result == "valid" } == 18)
  }

  @Test func `cases that Wycheproof calls invalid or that we do not support never open`() throws {
    var reached: [String: Int] = [:]
    for vector in JWEVector.wycheproof {
      let reach = try vector.read()
      switch reach {
      case .opened(let plaintext):
        #expect(vector.result == "valid", "\(vector.id)")
        #expect(plaintext == Hexadecimal.bytes(vector.pt ?? ""), "\(vector.id)")
        #expect(vector.headerMember("enc") == "A256GCM")
        reached["opened", default: 0] += 1
      default: reached["\(reach)", default: 0] += 1
      }
    }
    // Malformed: missing parts, a missing header, another serialization, and two tags whose last
    // character has surplus bits. "noBox" is A128CBC-HS256: its key also has 32 bytes, its nonce
    // has 16.
    #expect(reached == ["malformed": 9, "noSlot": 40, "noBox": 1, "opened": 1])
  }

  @Test func `no case is accepted as a vault's key or contents, whose headers are fixed`() throws {
    func refusal(_ body: () throws(FormatFault) -> Void) -> String? {
      do throws(FormatFault) { try body() } catch { return error.reason }
      return nil
    }
    // A case without five parts does not give JSON of this form either.
    func isExpected(_ reason: String?, _ vector: JWEVector) -> Bool {
      reason == "unknown algorithm" || reason != nil && !vector.isWhole
    }
    for vector in JWEVector.wycheproof {
      let parts = vector.parts + ["", "", "", "", ""]
      let key = Array(Self.key(parts).utf8)
      let ofKey = refusal { () throws(FormatFault) in
        _ = try KeyEnvelope(parsing: key.span.bytes, 0..<key.count)
      }
      #expect(isExpected(ofKey, vector), "\(vector.id)")
      let contents = Array(
        """
        {"protected":"\(parts[0])","aad":"","iv":"\(parts[2])","ciphertext":"\(parts[3])",\
        "tag":"\(parts[4])"}
        """.utf8)
      let ofContents = refusal { () throws(FormatFault) in
        _ = try ContentsEnvelope(parsing: contents.span.bytes, 0..<contents.count)
      }
      #expect(isExpected(ofContents, vector), "\(vector.id)")
    }
  }

  @Test func `a foreign JWE under our header is parsed but does not open`() throws {
    let vector = try valid()
    var parts = vector.parts
    parts[0] = Base64.url(Array(#"{"enc":"A256GCM","cty":"jwk+json"}"#.utf8))
    let text = Array(Self.key(parts).utf8)
    let key = try KeyEnvelope(parsing: text.span.bytes, 0..<text.count)
    guard let contentKey = try key.slots[0].contentKey(with: .keyFile(vector.secretKey())) else {
      Issue.record("the slot does not unwrap")
      return
    }
    #expect(throws: FormatFault.self) { _ = try key.vaultKey(contentKey: contentKey) }
  }

  /// Wycheproof has these modifications only with A256CBC-HS512 and A128GCM.
  @Test func `Wycheproof's modifications of the case that opens are refused`() throws {
    let vector = try valid()
    let reader = vector.parts
    func reach(_ edit: (inout [String]) -> Void) throws -> JWEVector.Reach {
      var parts = reader
      edit(&parts)
      return try vector.with(parts).read()
    }
    func changed(_ text: String) -> String { (text.first == "A" ? "B" : "A") + text.dropFirst() }
    func cut(_ text: String, to byteCount: Int) throws -> String {
      Base64.url(Array(try #require(JWEVector.bytes(text)).prefix(byteCount)))
    }
    func longer(_ text: String) throws -> String {
      Base64.url(try #require(JWEVector.bytes(text)) + [0, 0, 0])
    }
    #expect(try reach { _ in } == .opened(Array("foo".utf8)))
    #expect(try reach { $0[4] = changed($0[4]) } == .notAuthentic)
    let longTag = try longer(reader[4])
    #expect(try reach { $0[4] = longTag } == .noBox)
    for byteCount in [15, 12, 8, 0] {
      let tag = try cut(reader[4], to: byteCount)
      #expect(try reach { $0[4] = tag } == .noBox, "\(byteCount)")
    }
    #expect(try reach { $0.removeLast() } == .malformed)
    #expect(try reach { $0[3] = changed($0[3]) } == .notAuthentic)
    #expect(try reach { $0[3] = "" } == .notAuthentic)
    #expect(try reach { $0.remove(at: 3) } == .malformed)
    #expect(try reach { $0[2] = changed($0[2]) } == .notAuthentic)
    #expect(try reach { $0[2] = "" } == .noBox)
    #expect(try reach { $0.remove(at: 2) } == .malformed)
    #expect(try reach { $0[1] = changed($0[1]) } == .wrongKey)
    #expect(try reach { $0[1] = "" } == .noSlot)
    #expect(try reach { $0.remove(at: 1) } == .malformed)
    let header = Base64.url(Array(#"{"alg":"A256KW","enc":"A256GCM" }"#.utf8))
    #expect(try reach { $0[0] = header } == .notAuthentic)
    #expect(try reach { $0[0] = "" } == .malformed)
    #expect(try reach { $0.removeFirst() } == .malformed)
  }

  @Test func `AES256KeyWrap unwraps each unchanged A256KW key`() throws {
    let refused = ["rejectsModifiedEncryptedKey", "rejectsMissingEncryptedKey"]
    // The length in bytes of each algorithm's key.
    let lengths = [
      "A128GCM": 16, "A192GCM": 24, "A256GCM": 32, "A128CBC-HS256": 32, "A192CBC-HS384": 48,
      "A256CBC-HS512": 64,
    ]
    var counts = [0, 0]
    for vector in JWEVector.wycheproof where vector.isWhole && vector.algorithm == "A256KW" {
      let wrapped = try #require(JWEVector.bytes(vector.parts[1]))
      let key = try vector.secretKey()
      if refused.contains(vector.comment ?? "") {
        #expect(throws: CryptoError.self, "\(vector.id)") {
          _ = try AES256KeyWrap.unwrap(wrapped, with: key)
        }
        counts[1] += 1
      } else {
        let contentKey = try AES256KeyWrap.unwrap(wrapped, with: key)
        #expect(contentKey.byteCount == lengths[vector.headerMember("enc") ?? ""], "\(vector.id)")
        counts[0] += 1
      }
    }
    #expect(counts == [22, 2])
  }

  /// We do not support A256GCMKW, but AES-256-GCM: for the key in each case, and for the contents
  /// in two.
  @Test func `AES256GCM opens each A256GCMKW key and two contents`() throws {
    var counts = [0, 0]
    for vector in JWEVector.wycheproof where vector.algorithm == "A256GCMKW" {
      let box = AES256GCM.SealedBox(
        ciphertext: try #require(JWEVector.bytes(vector.parts[1])),
        tag: try #require(vector.headerMember("tag").flatMap(JWEVector.bytes)))
      let nonce = try #require(vector.headerMember("iv").flatMap(JWEVector.bytes))
      let contentKey = try AES256GCM.open(
        box, key: vector.secretKey(), nonce: nonce, authenticating: [UInt8]().span.bytes)
      counts[0] += 1
      guard vector.headerMember("enc") == "A256GCM" else { continue }
      #expect(
        JWEVector.open(vector.parts, with: contentKey)
          == .opened(Hexadecimal.bytes(vector.pt ?? "")), "\(vector.id)")
      counts[1] += 1
    }
    #expect(counts == [9, 2])
  }

  @Test func `PBES2-HS512+A256KW unwraps the key of RFC 7520`() throws {
    let vector = try #require(JWEVector.all.first { $0.jwe == nil })
    let header = try #require(vector.header)
    let encryptedKey = try #require(vector.encryptedKey)
    let slot = try JWEVector.slot(header, encryptedKey: encryptedKey)
    #expect(slot.kind.iterationCount == 8192)
    func contentKey(_ password: [UInt8]) throws -> [UInt8]? {
      let secret = VaultSecret.password(Credentials(password: SecretBytes(copying: password)))
      switch try slot.contentKey(with: secret) {
      case .none: return nil
      case .some(let contentKey): return contentKey.array()
      }
    }
    let password = try #require(JWEVector.bytes(vector.key))
    #expect(try contentKey(password) == vector.contentKey.flatMap(JWEVector.bytes))
    #expect(try contentKey(password.dropLast()) == nil)
  }

  private func valid() throws -> JWEVector {
    try #require(
      JWEVector.wycheproof.first { $0.headerMember("enc") == "A256GCM" && $0.algorithm == "A256KW" }
    )
  }

  private static func key(_ parts: [String]) -> String {
    """
    {"protected":"\(parts[0])","recipients":[{"header":{"alg":"A256KW",\
    "kid":"keyfile:wycheproof"},"encrypted_key":"\(parts[1])"}],"iv":"\(parts[2])",\
    "ciphertext":"\(parts[3])","tag":"\(parts[4])"}
    """
  }
}

extension JWEVector {
  /// A copy of the case with other parts.
  fileprivate func with(_ parts: [String]) -> JWEVector {
    JWEVector(
      id: id, comment: comment, key: key, jwe: parts.joined(separator: "."), pt: pt,
      result: result, header: nil, encryptedKey: nil, contentKey: nil)
  }
}
