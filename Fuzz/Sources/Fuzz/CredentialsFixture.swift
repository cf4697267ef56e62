@_spi(Testing) import AccessControl
import Foundation

/// Fields `Authorization`: of any bytes, made from users and passwords, and challenges.
///
/// The first byte of the input selects one of these. Foundation's base64 is the judge.
final class CredentialsFixture {
  /// What fields say.
  private enum Reading: Equatable {
    case none, malformed, otherScheme
    case password(user: [UInt8], [UInt8])
    case token([UInt8])
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let rest = Array(input.dropFirst())
    switch mode & 3 {
    case 0, 1: check(rest)
    case 2: made(rest, choice: mode >> 2)
    default: challenge(String(decoding: rest, as: UTF8.self))
    }
  }

  private func read(_ fields: [String]) -> Reading {
    switch Authorization.read(fields) {
    case nil: .none
    case .malformed: .malformed
    case .otherScheme: .otherScheme
    case .password(let user, let password):
      .password(user: Array(user.text.utf8), AuthorizationProbe.bytes(of: password))
    case .token(let text): .token(text)
    }
  }

  // MARK: - Any field

  /// What is read is what Foundation finds in the field, and is read again from another form of it.
  private func check(_ input: [UInt8]) {
    let field = String(decoding: input, as: UTF8.self)
    let reading = read([field])
    require(reading != .none, "a field is none")
    for fields in [[field, field], [field, "Basic YTpi"], ["", field]] {
      require(read(fields) == .malformed, "one of two fields is read")
    }
    let words = Array(field.utf8).split(separator: UInt8(ascii: " ")).map { Array($0) }
    require(read([field + " "]) == reading, "a space behind a field changes it")
    switch reading {
    case .none, .malformed: return
    case .otherScheme:
      let scheme = words.first.map { String(decoding: $0, as: UTF8.self).lowercased() }
      require(scheme != "basic", "Basic is another scheme")
    case .token(let text):
      require(words.count == 3 && words[2] == text, "a token is not the last word")
      same(reading, ["Application", "token"], text)
    case .password(let user, let password):
      let text = words[words.count - 1]
      require(decoded(text) == user + Array(":".utf8) + password, "Foundation finds another user")
      bounds(user, password)
      same(reading, ["bASIC"], text)
      same(reading, ["application", "BASIC"], text)
      same(reading, ["Basic"], Array(Data(user + Array(":".utf8) + password).base64EncodedData()))
      // The end of a password is not the end of the field.
      require(read(["Basic \(field)"]) != reading, "a field within another is read")
    }
    require(
      input.count <= Authorization.maximumByteCount, "a field of \(input.count) bytes is read")
  }

  private func same(_ reading: Reading, _ scheme: [String], _ text: [UInt8]) {
    let field = (scheme + [String(decoding: text, as: UTF8.self)]).joined(separator: "   ")
    // The other scheme can be longer than there is room for.
    guard field.utf8.count <= Authorization.maximumByteCount else { return }
    require(read([field]) == reading, "another form of a field says something else")
  }

  private func bounds(_ user: [UInt8], _ password: [UInt8]) {
    require((1...255).contains(user.count), "a user of \(user.count) bytes")
    require(!user.contains(UInt8(ascii: ":")), "a colon in a user")
    require(
      password.count <= Authorization.maximumPasswordByteCount,
      "a password of \(password.count) bytes")
    require(
      (user + password).allSatisfy { $0 >= 0x20 && $0 != 0x7F }, "a control character is read")
  }

  /// The bytes of base64 or base64url, with padding or without.
  private func decoded(_ text: [UInt8]) -> [UInt8]? {
    var standard = text.filter { $0 != UInt8(ascii: "=") }.map { byte in
      switch byte {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      default: byte
      }
    }
    while standard.count % 4 != 0 { standard.append(UInt8(ascii: "=")) }
    return Data(base64Encoded: Data(standard)).map { Array($0) }
  }

  // MARK: - A field from a user and a password

  /// A user and a password come back, if they can be in a field.
  private func made(_ input: [UInt8], choice: UInt8) {
    let parts = input.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { return }
    let user = Array(parts[0])
    // Long ones too, which a short input would not have.
    let password = Array(
      repeatElement(Array(parts[1]), count: choice & 4 == 0 ? 1 : 1 + Int(choice >> 3)).joined())
    let text = Data(user + Array(":".utf8) + password).base64EncodedString()
    let scheme = ["Basic", "basic", "Application Basic", "APPLICATION BASIC"][Int(choice & 3)]
    let field = "\(scheme) \(text)"
    let isValid =
      (1...255).contains(user.count) && !user.contains(UInt8(ascii: ":"))
      && password.count <= Authorization.maximumPasswordByteCount
      && field.utf8.count <= Authorization.maximumByteCount
      && isText(user) && isText(password)
    let reading = read([field])
    guard isValid || user.contains(UInt8(ascii: ":")) else {
      return require(reading == .malformed, "an invalid field is read")
    }
    guard isValid else { return }
    require(reading == .password(user: user, password), "a valid field is read in another way")
    check(Array(field.utf8))
    require(
      read(["Application Token \(text)"]) == .token(Array(text.utf8)), "a token is not read")
  }

  private func isText(_ bytes: [UInt8]) -> Bool {
    String(validating: bytes, as: UTF8.self) != nil
      && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
  }

  // MARK: - Challenges

  /// A realm cannot end its quotation or the field, and comes back without control characters.
  private func challenge(_ realm: String) {
    let challenges = Challenge.all(realm: realm)
    require(challenges.count == 3, "\(challenges.count) challenges")
    for challenge in challenges {
      let field = Array(challenge.field.utf8)
      require(field.allSatisfy { $0 >= 0x20 && $0 != 0x7F }, "a control character in a challenge")
      guard let start = field.firstRange(of: Array(#"realm=""#.utf8))?.upperBound else {
        return require(false, "a challenge without a realm")
      }
      var (text, rest) = ([UInt8](), field[start...])
      while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
        let isEscape = byte == UInt8(ascii: "\\")
        guard let plain = isEscape ? rest.popFirst() : byte else {
          return require(false, "an escape of nothing")
        }
        text.append(plain)
      }
      require(rest.isEmpty, "a realm ends its quotation")
      let expected = realm.utf8.filter { $0 >= 0x20 && $0 != 0x7F }
      require(text == expected, "a realm comes back changed")
    }
  }
}
