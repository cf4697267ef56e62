internal import VaultCrypto

/// What two operators compare by voice, so that nothing was exchanged between their nodes.
///
/// 125 bits of a SHA-256 digest in base32: `ABCDE-FGHIJ-KLMNO-PQRST-UVWXY`. It is not secret.
package struct Fingerprint: Sendable, Hashable, CustomStringConvertible {
  private static let characterCount = 25
  private static let groupCharacterCount = 5

  private let characters: String

  /// - Parameter digest: 32 bytes.
  init(digest: [UInt8]) {
    characters = String(Base32.encode(digest).prefix(Self.characterCount))
  }

  /// Reads what an operator has entered; case, spaces and hyphens do not matter.
  ///
  /// It is nil unless all 25 characters are there.
  package init?(_ text: String) {
    let entered = text.uppercased().filter { $0 != " " && $0 != "-" }
    guard entered.count == Self.characterCount, Base32.hasOnlyItsCharacters(entered) else {
      return nil
    }
    characters = entered
  }

  /// Five groups of five characters.
  package var description: String {
    var groups: [Substring] = []
    var rest = characters[...]
    while !rest.isEmpty {
      groups.append(rest.prefix(Self.groupCharacterCount))
      rest = rest.dropFirst(Self.groupCharacterCount)
    }
    return groups.joined(separator: "-")
  }

  /// The digest of what a label names.
  static func digest(_ label: StaticString, _ contents: [UInt8]) throws(CryptoError) -> [UInt8] {
    try unsafe SHA256.digest((Array("\(label)".utf8) + contents).span.bytes)
  }
}
