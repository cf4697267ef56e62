public import VaultCrypto

/// What a table has of a user's password: enough to check one, and nothing to log in with.
public struct PasswordVerifier: Sendable, Hashable {
  /// The length of a salt in bytes.
  public static let saltByteCount = 16
  /// The length of a code in bytes.
  public static let codeByteCount = 32
  /// The most iterations that a stored verifier can ask for.
  public static let maximumIterationCount = 10_000_000

  /// Random bytes, new with each password.
  public let salt: [UInt8]
  /// The iterations of PBKDF2.
  public let iterationCount: Int
  /// The code of the derived key under the server's key.
  public let code: [UInt8]

  /// Takes the columns of a table; nil for values that this module does not write.
  public init?(salt: [UInt8], iterationCount: Int, code: [UInt8]) {
    guard salt.count == Self.saltByteCount, code.count == Self.codeByteCount,
      (1...Self.maximumIterationCount).contains(iterationCount)
    else { return nil }
    self.salt = salt
    self.iterationCount = iterationCount
    self.code = code
  }

  /// Which password it is of.
  public var version: PasswordVersion { PasswordVersion(salt: salt) }
}

/// Which of a user's passwords was checked: each new one has a version of its own, also one that is the same again.
public struct PasswordVersion: Sendable, Hashable {
  /// Random bytes, new with each password.
  let salt: [UInt8]
}

/// Makes and checks the verifiers of passwords under the server's key.
///
/// A verifier is HMAC-SHA-256 over a zero byte, the application's id (8 bytes, most significant
/// first), the key that PBKDF2-HMAC-SHA-512 derives from the password (32 bytes), and the user. So a
/// stolen table does not confirm a guess, and a verifier that is moved to another user fits nothing.
public final class RealmHasher: Sendable {
  /// The iterations of new verifiers: as many as a new vault has.
  public static let standardIterationCount = 300_000

  /// The shortest password, in bytes.
  public static let minimumPasswordByteCount = 8

  private static let derivedByteCount = 32

  private let key: SecretBytes
  private let random: RandomSource
  /// Costs what the verifier of a user costs, where there is no such user.
  private let decoy: PasswordVerifier

  /// Takes a random key of 32 bytes, which must be the same for the life of the tables.
  ///
  /// - Parameter iterationCount: the iterations of new verifiers.
  public init(
    key: consuming SecretBytes, iterationCount: Int = RealmHasher.standardIterationCount,
    random: RandomSource = .system
  ) {
    self.key = key
    self.random = random
    let decoy = PasswordVerifier(
      salt: random.bytes(count: PasswordVerifier.saltByteCount), iterationCount: iterationCount,
      code: random.bytes(count: PasswordVerifier.codeByteCount))
    guard let decoy else { preconditionFailure("an iteration count is out of range") }
    self.decoy = decoy
  }

  /// A verifier with a new salt.
  ///
  /// - Throws: `invalidPassword` for a password that no client can send, or that is too short; an
  ///   error of OpenSSL.
  public func verifier(
    for password: Password, user: Name, of application: ApplicationID
  ) throws -> PasswordVerifier {
    try Self.check(password)
    let salt = random.bytes(count: PasswordVerifier.saltByteCount)
    let code = try code(
      password, salt: salt, iterationCount: decoy.iterationCount, user, application)
    guard
      let verifier = PasswordVerifier(
        salt: salt, iterationCount: decoy.iterationCount, code: code)
    else { throw CryptoError(.libraryFailure, in: "HMAC") }
    return verifier
  }

  /// Whether a password is that of a user.
  ///
  /// This derives a key, which takes a good part of a second, also for a user that does not exist.
  ///
  /// - Parameter verifier: nil for a user that does not exist.
  /// - Throws: an error of OpenSSL.
  public func matches(
    _ password: Password, _ verifier: PasswordVerifier?, user: Name, of application: ApplicationID
  ) throws(CryptoError) -> Bool {
    let asked = verifier ?? decoy
    let code = try code(
      password, salt: asked.salt, iterationCount: asked.iterationCount, user, application)
    let isEqual = unsafe isEqualInConstantTime(code.span.bytes, asked.code.span.bytes)
    return isEqual && verifier != nil
  }

  private static func check(_ password: Password) throws(AccessError) {
    let byteCount = password.bytes.byteCount
    guard (minimumPasswordByteCount...Authorization.maximumPasswordByteCount).contains(byteCount)
    else {
      throw AccessError(
        .invalidPassword, "a password of \(byteCount) bytes is not possible",
        hint: "use \(minimumPasswordByteCount) to \(Authorization.maximumPasswordByteCount)")
    }
    let hasControl = unsafe password.bytes.withUnsafeBytes { bytes in
      unsafe bytes.contains { $0 < 0x20 || $0 == 0x7F }
    }
    guard !hasControl else {
      throw AccessError(
        .invalidPassword, "the password has a control character",
        hint: "HTTP clients cannot send it: use others")
    }
  }

  private func code(
    _ password: Password, salt: [UInt8], iterationCount: Int, _ user: Name,
    _ application: ApplicationID
  ) throws(CryptoError) -> [UInt8] {
    let derived = try PBKDF2.sha512(
      password: password.bytes, salt: salt, iterationCount: iterationCount,
      byteCount: Self.derivedByteCount)
    let head = [0] + bytes(of: application)
    let name = Array(user.text.utf8)
    let message = unsafe SecretBytes(byteCount: head.count + derived.byteCount + name.count) {
      target in
      unsafe target.copyBytes(from: head)
      unsafe derived.withUnsafeBytes { derived in
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[head.count...])
          .copyMemory(from: derived)
      }
      unsafe UnsafeMutableRawBufferPointer(
        rebasing: target[(head.count + derived.byteCount)...]
      ).copyBytes(from: name)
    }
    return try message.withBytes { (message) throws(CryptoError) in
      try HMAC.sha256(key: key, message: message)
    }
  }

  private func bytes(of application: ApplicationID) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: application.number >> Int64(56 - 8 * $0)) }
  }

  // MARK: - Attempts

  /// What an attempt to log in is counted under.
  ///
  /// These are hashes, because people type passwords where a user is asked for.
  ///
  /// - Parameter network: what the source is a part of; nil if it is the source itself.
  /// - Throws: an error of OpenSSL.
  public func attempt(
    by user: Name, of application: ApplicationID, from source: String, in network: String? = nil
  ) throws(CryptoError) -> LoginAttempt {
    let name = Array(user.text.utf8)
    let id = bytes(of: application)
    let whole = id + [UInt8(name.count)] + name
    return LoginAttempt(
      source: try subject(1, Array(source.utf8)), user: try subject(2, whole),
      pair: try subject(3, whole + Array(source.utf8)),
      network: try subject(4, Array((network ?? source).utf8)))
  }

  private func subject(_ kind: UInt8, _ bytes: [UInt8]) throws(CryptoError) -> LoginSubject {
    let message = [kind] + bytes
    return LoginSubject(
      bytes: unsafe try HMAC.sha256(key: key, message: message.span.bytes))
  }
}

/// The hash of a user, of a source, or of both, whose failed logins are counted.
public struct LoginSubject: Sendable, Hashable {
  /// The 32 bytes.
  public let bytes: [UInt8]

  /// Takes the bytes of a table.
  public init(bytes: [UInt8]) { self.bytes = bytes }
}

/// An attempt to log in: what its failure is counted under.
public struct LoginAttempt: Sendable, Hashable {
  /// Where it comes from.
  public let source: LoginSubject
  /// Whom it names.
  public let user: LoginSubject
  /// Both together.
  public let pair: LoginSubject
  /// The network of the source, which bounds the attempts under way alone.
  public let network: LoginSubject
}
