public import Foundation
public import VaultCrypto

/// Passwords that were right a moment ago, as codes under a key of this process.
///
/// An entry is for one user at one source, and a wrong password there removes it: the cache must not
/// answer more guesses than the back-off allows. The code covers the verifier, so a new password, or
/// a removed user, has no entry.
public struct LoginCache: ~Copyable, Sendable {
  /// How long a password counts as right after its check.
  public static let lifetime: TimeInterval = 60

  /// What is cached: the user, where the user is, and the code.
  public struct Entry: Sendable, Hashable {
    fileprivate let pair: LoginSubject
    fileprivate let code: [UInt8]
  }

  private let key: SecretBytes
  private let maximumCount: Int
  private var codes: [LoginSubject: (code: [UInt8], end: Date)] = [:]

  /// Makes an empty cache with a random key.
  public init(random: RandomSource = .system, maximumCount: Int = 10_000) {
    key = SecretBytes.random(byteCount: 32, from: random)
    self.maximumCount = maximumCount
  }

  /// How many entries there are.
  public var count: Int { codes.count }

  /// The entry of a password that someone gives.
  ///
  /// Two are equal if user, source and password are.
  ///
  /// - Parameter verifier: nil for a user that does not exist.
  /// - Throws: an error of OpenSSL.
  public borrowing func entry(
    _ password: Password, _ verifier: PasswordVerifier?, _ attempt: LoginAttempt
  ) throws(CryptoError) -> Entry {
    let head = verifier.map { $0.salt + $0.code } ?? []
    let message = unsafe SecretBytes(byteCount: head.count + password.bytes.byteCount) { target in
      unsafe target.copyBytes(from: head)
      unsafe password.bytes.withUnsafeBytes { password in
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[head.count...])
          .copyMemory(from: password)
      }
    }
    let code = try message.withBytes { (message) throws(CryptoError) in
      try HMAC.sha256(key: key, message: message)
    }
    return Entry(pair: attempt.pair, code: code)
  }

  /// Whether this password was right at this source a moment ago.
  public mutating func confirms(_ entry: Entry, at now: Date) -> Bool {
    guard let (code, end) = codes[entry.pair] else { return false }
    if now < end, now > end - 2 * Self.lifetime,
      unsafe isEqualInConstantTime(code.span.bytes, entry.code.span.bytes)
    {
      return true
    }
    codes[entry.pair] = nil
    return false
  }

  /// Keeps a password that is right.
  public mutating func put(_ entry: Entry, at now: Date) {
    if codes.count >= maximumCount { codes = codes.filter { now < $0.value.end } }
    guard codes.count < maximumCount else { return }
    codes[entry.pair] = (entry.code, now + Self.lifetime)
  }
}
