import AccessControl
import Foundation
import Testing
import VaultCrypto

/// The fields of HTTP authentication, each trap of clients that were met.
@Suite struct AuthorizationTests {
  /// What a field is, in one word, with the user or the token.
  private func read(_ fields: String...) -> String? {
    Authorization.read(fields).map { found in
      switch found {
      case .password(let user, _): "user \(user)"
      case .token(let text): "token \(String(decoding: text, as: UTF8.self))"
      case .otherScheme: "other"
      case .malformed: "malformed"
      }
    }
  }

  private func basic(_ text: String) -> String { basic(Array(text.utf8)) }
  private func basic(_ bytes: [UInt8]) -> String { "Basic " + Data(bytes).base64EncodedString() }

  /// Whether a field has a password: seen by its verifier.
  private func hasPassword(_ field: String, _ password: String) throws -> Bool {
    guard case .password(let user, let given) = Authorization.read([field]) else { return false }
    let realm = RealmHasher(
      key: SecretBytes(copying: [UInt8](repeating: 7, count: 32)), iterationCount: 1)
    let expected = Password(SecretBytes(copying: Array(password.utf8)))
    let verifier = try realm.verifier(for: expected, user: user, of: shop)
    return try realm.matches(given, verifier, user: user, of: shop)
  }

  @Test func `RFC 7617's example is read`() throws {
    #expect(read("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==") == "user Aladdin")
    #expect(try hasPassword("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "open sesame"))
    #expect(read("Basic dGVzdDoxMjPCow==") == "user test")
  }

  @Test func `no field is no authorization`() { #expect(read() == nil) }

  @Test(arguments: [
    "basic", "BASIC", "Application Basic", "application basic", "APPLICATION  BASIC", " Basic",
  ])
  func `the scheme is read without regard to case`(scheme: String) {
    #expect(read("\(scheme) dGVzdDoxMjPCow==") == "user test")
    #expect(read("\(scheme)   dGVzdDoxMjPCow== ") == "user test")
  }

  @Test func `a token of two words is read, with its padding`() {
    #expect(read("Application Token qEF2AkF0-_==") == "token qEF2AkF0-_==")
    #expect(read("application TOKEN abc") == "token abc")
  }

  @Test(arguments: [
    "Negotiate YII=", "Digest realm=\"a\"", "Bearer abc", "Application abc", "Token x",
  ])
  func `another scheme is told from a malformed field`(field: String) {
    #expect(read(field) == "other")
  }

  @Test(arguments: [
    "", " ", "Basic", "Application Basic", "Application Token", "Basic =", "Basic a b", "Basic !",
    "Basic realm=\"a\"", "Application Basic realm=\"x\"", "Application Token realm=\"x\"",
    "Basic\tdGVzdDoxMjPCow==", "Basic dGVzd", "Basic dGVzdA==", "Basic dGVzdDoxMjPCow==, Basic x",
    "Application Token a,b", "Ba\"sic x", "Basic dGVzdDoxMjPCow==\u{0}",
  ])
  func `a field outside of the grammar is malformed`(field: String) {
    #expect(["malformed", "other"].contains(read(field)))
    #expect(read(field) != "other" || field.hasPrefix("Application "), "\(field)")
  }

  @Test func `two fields are malformed, also when they are equal`() {
    #expect(read("Basic dGVzdDoxMjPCow==", "Basic dGVzdDoxMjPCow==") == "malformed")
  }

  @Test func `the first colon ends the user`() throws {
    #expect(read(basic("ana:a:b:c:d:e")) == "user ana")
    #expect(try hasPassword(basic("ana:a:b:c:d:e"), "a:b:c:d:e"))
  }

  @Test func `a user without a name, or nothing but a name, is malformed`() {
    #expect(read(basic(":password")) == "malformed")
    #expect(read(basic("ana")) == "malformed")
  }

  @Test(arguments: ["a\u{0}na:password", "ana:pass\r\nword", "ana:pass\u{7F}", "a\tb:password"])
  func `control characters are malformed`(text: String) {
    #expect(read(basic(text)) == "malformed")
  }

  @Test func `bytes that are not UTF-8 are malformed, in the user and in the password`() {
    #expect(read(basic([0xE9, 0x3A, 0x61])) == "malformed")
    #expect(read(basic([0x61, 0x3A, 0xE9])) == "malformed")
    #expect(read(basic([0x61, 0x3A, 0xED, 0xA0, 0x80])) == "malformed")
  }

  @Test func `two spellings of one character are two users`() {
    let texts = ["e\u{301}", "\u{E9}"].map { read(basic("\($0):password")) ?? "" }
    #expect(Array(texts[0].utf8) != Array(texts[1].utf8))
  }

  @Test func `long fields, users and passwords are malformed`() {
    func password(_ count: Int) -> String { basic("ana:" + String(repeating: "x", count: count)) }
    #expect(read(password(1024)) == "user ana")
    #expect(read(password(1025)) == "malformed")
    #expect(read(basic(String(repeating: "u", count: 256) + ":password")) == "malformed")
    #expect(read("Application Token " + String(repeating: "a", count: 21_900)) != "malformed")
    #expect(read("Application Token " + String(repeating: "a", count: 22_000)) == "malformed")
  }

  @Test func `each challenge is a field of its own, and Basic is the first`() {
    #expect(
      Challenge.all(realm: "shop").map(\.field) == [
        #"Basic charset="UTF-8", realm="shop""#,
        #"Application Basic charset="UTF-8", realm="shop""#,
        #"Application Token realm="shop""#,
      ])
  }

  @Test func `a client that reads the realm up to the last quotation mark finds it`() throws {
    for challenge in Challenge.all(realm: "shop") {
      let greedy = try #require(challenge.field.firstMatch(of: /realm="(.*)"/))
      #expect(greedy.output.1 == "shop")
    }
  }

  @Test func `a realm cannot end its quotation or the field`() {
    #expect(
      Challenge(.applicationToken, realm: "a\"b\\c\r\nX: y").field
        == #"Application Token realm="a\"b\\cX: y""#)
  }
}
