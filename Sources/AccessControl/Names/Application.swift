public import VaultCrypto

/// The number of an application, which Pusher's clients use in paths.
public struct ApplicationID: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The number, from 1.
  public let number: Int64

  /// Checks a number.
  ///
  /// - Throws: `invalidApplication` unless it is positive.
  public init(_ number: Int64) throws(AccessError) {
    guard number > 0 else {
      throw AccessError(.invalidApplication, "application id \(number) is not positive")
    }
    self.number = number
  }

  /// The order of the numbers.
  public static func < (a: ApplicationID, b: ApplicationID) -> Bool { a.number < b.number }

  /// The decimal number.
  public var description: String { String(number) }

  /// The number in 8 bytes, the most significant first.
  package var bytes: [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: number >> Int64(56 - 8 * $0)) }
  }
}

/// A set of channels with keys of its own: PubNub's key set, Pusher's app, STOMP's virtual host.
public struct Application: Sendable {
  /// The longest name, in bytes.
  public static let maximumNameByteCount = 32

  /// The longest publish or subscribe key, in bytes.
  public static let maximumKeyByteCount = 128

  /// The number.
  public let id: ApplicationID

  /// The name, which never changes, because the engine's channels begin with it.
  public let name: String

  /// The key in the path of each publish; it is not secret.
  public let publishKey: String

  /// The key in the path of each call; it is not secret.
  public let subscribeKey: String

  /// The key that signs requests and gives every right.
  public let secretKey: SecretKey

  /// Whether everyone can publish, subscribe and use channel groups without a grant.
  public let isOpen: Bool

  /// Makes an application, closed by default.
  ///
  /// - Parameters:
  ///   - name: 1 to 32 of `a-z`, `0-9` and `-`.
  ///   - publishKey: 1 to 128 of `a-z`, `A-Z`, `0-9`, `-` and `_`.
  ///   - subscribeKey: as `publishKey`.
  /// - Throws: `invalidApplication`.
  public init(
    id: ApplicationID, name: String, publishKey: String, subscribeKey: String,
    secretKey: SecretKey, isOpen: Bool = false
  ) throws(AccessError) {
    guard (1...Self.maximumNameByteCount).contains(name.utf8.count),
      name.utf8.allSatisfy({ $0.isLowercaseLetter || $0.isDigit || $0 == UInt8(ascii: "-") })
    else {
      throw AccessError(
        .invalidApplication, "this name of an application is not valid",
        hint: "use 1 to \(Self.maximumNameByteCount) of a-z, 0-9 and -")
    }
    for (key, kind) in [(publishKey, "publish"), (subscribeKey, "subscribe")] {
      guard (1...Self.maximumKeyByteCount).contains(key.utf8.count),
        key.utf8.allSatisfy({ $0.isUnreserved && $0 != UInt8(ascii: ".") })
      else {
        throw AccessError(
          .invalidApplication, "the \(kind) key of application '\(name)' is not valid",
          hint: "use 1 to \(Self.maximumKeyByteCount) of a-z, A-Z, 0-9, - and _")
      }
    }
    self.id = id
    self.name = name
    self.publishKey = publishKey
    self.subscribeKey = subscribeKey
    self.secretKey = secretKey
    self.isOpen = isOpen
  }
}

/// The secret key of an application, shared by reference and wiped when its last user releases it.
public final class SecretKey: Sendable {
  private let key: SecretBytes

  /// Takes the bytes of the key, for PubNub the ASCII text `sec-c-...`.
  public init(_ key: consuming SecretBytes) { self.key = key }

  /// HMAC-SHA-256 under this key: 32 bytes.
  ///
  /// - Throws: an error of OpenSSL.
  func code(_ message: [UInt8]) throws(CryptoError) -> [UInt8] {
    unsafe try HMAC.sha256(key: key, message: message.span.bytes)
  }

  /// Whether a caller has sent the key itself, in time that depends on the length alone.
  package func isEqual(to text: [UInt8]) -> Bool {
    key.withBytes { unsafe isEqualInConstantTime($0, text.span.bytes) }
  }

  /// A key of its own for one purpose, by HKDF-SHA-256.
  ///
  /// - Throws: an error of OpenSSL.
  func derivedKey(_ purpose: String) throws(CryptoError) -> SecretBytes {
    try HKDF.sha256(inputKey: key, salt: [], info: Array(purpose.utf8), byteCount: 32)
  }
}

extension UInt8 {
  var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
  var isLowercaseLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) }

  /// Whether PubNub's signatures leave this character as it is: `A-Z a-z 0-9 - _ .`.
  var isUnreserved: Bool {
    isLowercaseLetter || isDigit || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self)
      || self == UInt8(ascii: "-") || self == UInt8(ascii: "_") || self == UInt8(ascii: ".")
  }
}
