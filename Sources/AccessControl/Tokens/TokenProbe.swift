/// What the fuzz harnesses reach of the parts inside.
@_spi(Testing) public enum TokenProbe {
  /// A signed token as bytes.
  public static func bytes(_ contents: TokenContents, signer: TokenSigner) throws -> [UInt8] {
    Base64.decode(try signer.issue(contents).utf8, alphabet: .url) ?? []
  }

  /// Bytes as base64url without padding.
  public static func text(_ bytes: [UInt8]) -> String { Base64.encode(bytes, padded: false) }

  /// The encoding of what was read in a token, whatever its signature; nil if it cannot be read.
  public static func encodedAgain(_ bytes: [UInt8]) -> [UInt8]? {
    guard let (contents, signature) = try? TokenContents.decode(bytes) else { return nil }
    return contents.encoded(signature: signature)
  }
}
