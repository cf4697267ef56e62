/// The name of a vault, which is also its file name.
public struct VaultID: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The name, `[a-z0-9][a-z0-9_-]{0,63}`.
  public let rawValue: String

  /// The vault that keeps the messaging database's key.
  public static let messaging = VaultID(unchecked: "messaging")

  /// Checks a name.
  ///
  /// - Throws: `invalidArgument` unless it matches `[a-z0-9][a-z0-9_-]{0,63}`.
  public init(_ rawValue: String) throws(VaultError) {
    guard (1...64).contains(rawValue.utf8.count), isSlug(rawValue.utf8) else {
      throw VaultError(
        .invalidArgument, "invalid vault name: '\(rawValue)'",
        hint: "use 1 to 64 of a-z, 0-9, - and _, and begin with a letter or a digit")
    }
    self.rawValue = rawValue
  }

  private init(unchecked rawValue: String) {
    self.rawValue = rawValue
  }

  /// The name itself.
  public var description: String { rawValue }

  /// Alphabetical order.
  public static func < (a: VaultID, b: VaultID) -> Bool { a.rawValue < b.rawValue }
}

/// Whether bytes match `[a-z0-9][a-z0-9_-]*`.
func isSlug(_ bytes: some Collection<UInt8>) -> Bool {
  guard let first = bytes.first, first != UInt8(ascii: "-"), first != UInt8(ascii: "_") else {
    return false
  }
  return bytes.allSatisfy { byte in
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
