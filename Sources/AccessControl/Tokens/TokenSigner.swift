public import VaultCrypto

/// Makes and reads the tokens of an application.
///
/// The signature is HMAC-SHA-256 over the CBOR map without `sig`, under a key of its own: HKDF of
/// the secret key with the purpose `datavault token 1`, a space and the application's id. So a
/// token is no signature of a request, and a new secret key ends all tokens.
public final class TokenSigner: Sendable {
  /// The largest token, in bytes before base64url.
  public static let maximumByteCount = 16_384

  /// What a text in the parameter `auth` is.
  public enum Reading: Sendable {
    /// A token of this application.
    case token(Token)
    /// A text with the form of a token that this application did not sign; it is refused.
    case forged
    /// No token: an auth key of version 2.
    case other
  }

  private let application: ApplicationID
  private let key: SecretBytes

  /// Derives the key.
  ///
  /// - Throws: an error of OpenSSL.
  public init(_ application: Application) throws(CryptoError) {
    self.application = application.id
    key = try application.secretKey.derivedKey("datavault token 1 \(application.id)")
  }

  /// Signs contents; the text is base64url with padding, as PubNub's service writes it.
  ///
  /// - Throws: `invalidToken` for contents that are too large or name something twice,
  ///   `invalidPattern`, or an error of OpenSSL.
  public func issue(_ contents: TokenContents) throws -> String {
    let bytes = contents.encoded(signature: try code(contents))
    guard bytes.count <= Self.maximumByteCount else {
      throw AccessError(
        .invalidToken, "a token of \(bytes.count) bytes is too large",
        hint: "use at most \(Self.maximumByteCount); patterns replace many names")
    }
    guard case .token = try read(bytes: bytes) else {
      throw AccessError(
        .invalidToken, "the contents of a token are not valid",
        hint: "name each item once, and nest meta at most \(CBORReader.maximumDepth) deep")
    }
    return Base64.encode(bytes, padded: true)
  }

  /// Reads the text of a parameter `auth`, after percent-decoding, with or without padding.
  ///
  /// - Throws: an error of OpenSSL.
  public func read(_ text: some Collection<UInt8>) throws(CryptoError) -> Reading {
    // 4 characters for each 3 bytes.
    guard text.count <= (Self.maximumByteCount + 2) / 3 * 4,
      let bytes = Base64.decode(text, alphabet: .url)
    else { return .other }
    do {
      return try read(bytes: bytes)
    } catch let error as CryptoError {
      throw error
    } catch {
      // A pattern that this version refuses, in a token that another version signed.
      return .forged
    }
  }

  private func read(bytes: [UInt8]) throws -> Reading {
    guard let (contents, signature) = try? TokenContents.decode(bytes) else { return .other }
    let expected = try code(contents)
    guard unsafe isEqualInConstantTime(expected.span.bytes, signature.span.bytes) else {
      return .forged
    }
    let hash = unsafe try SHA256.digest(bytes.span.bytes)
    guard let digest = TokenDigest(stored: hash) else { return .other }
    return .token(try Token(contents, digest: digest, application: application))
  }

  private func code(_ contents: TokenContents) throws(CryptoError) -> [UInt8] {
    let message = contents.unsigned
    return unsafe try HMAC.sha256(key: key, message: message.span.bytes)
  }
}
