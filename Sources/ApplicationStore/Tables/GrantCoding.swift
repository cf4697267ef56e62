package import AccessControl
internal import Foundation
package import VaultCrypto

/// The columns `holder` and `scope`: a byte for the kind, and a name.
///
/// See `docs/reference/application-tables.md`, "`application_grant`".
extension GrantHolder {
  var stored: [UInt8] {
    switch self {
    case .everyone: [0]
    case .authKey(let hash): [1] + hash.bytes
    case .user(let name): [2] + name.text.utf8
    case .role(let name): [3] + name.text.utf8
    }
  }

  /// - Returns: nil for bytes that this module does not write.
  init?(stored bytes: [UInt8]) {
    let rest = Array(bytes.dropFirst())
    switch bytes.first {
    case 0 where rest.isEmpty: self = .everyone
    case 1:
      guard let hash = AuthKeyHash(stored: rest) else { return nil }
      self = .authKey(hash)
    case 2:
      guard let name = storedName(rest, Name.init) else { return nil }
      self = .user(name)
    case 3:
      guard let name = storedName(rest, Name.init) else { return nil }
      self = .role(name)
    default: return nil
    }
  }
}

extension Scope {
  var stored: [UInt8] {
    switch self {
    case .application: [0]
    case .channel(let name): [1] + name.text.utf8
    case .group(let name): [2] + name.text.utf8
    case .consumer(let name, let channel): [3] + channel.text.utf8 + [0] + name.text.utf8
    case .user(let name): [4] + name.text.utf8
    }
  }

  /// - Returns: nil for bytes that this module does not write.
  init?(stored bytes: [UInt8]) {
    let rest = bytes.dropFirst()
    switch bytes.first {
    case 0 where rest.isEmpty: self = .application
    case 1:
      guard let name = storedName(rest, ChannelName.init) else { return nil }
      self = .channel(name)
    case 2:
      guard let name = storedName(rest, GroupName.init) else { return nil }
      self = .group(name)
    case 3:
      let parts = rest.split(separator: 0, omittingEmptySubsequences: false)
      guard parts.count == 2, let channel = storedName(parts[0], ChannelName.init),
        let name = storedName(parts[1], Name.init)
      else { return nil }
      self = .consumer(name, of: channel)
    case 4:
      guard let name = storedName(rest, Name.init) else { return nil }
      self = .user(name)
    default: return nil
    }
  }
}

/// The name that bytes of a column are; nil for bytes that this module does not write.
func storedName<Found, Failure>(
  _ bytes: some Collection<UInt8>, _ check: (String) throws(Failure) -> Found
) -> Found? {
  String(validating: bytes, as: UTF8.self).flatMap { try? check($0) }
}

/// What commands name a grant by: 16 hexadecimal digits made of its application, holder and scope.
package struct GrantID: Sendable, Hashable, LosslessStringConvertible {
  /// The digits.
  package let description: String

  /// Reads 16 hexadecimal digits of either case; nil for any other text.
  package init?(_ description: String) {
    guard let digits = ShortDigest.read(description) else { return nil }
    self.description = digits
  }

  /// The id of the grant for a holder and a scope.
  ///
  /// - Throws: an error of OpenSSL.
  package init(_ key: Grant.Key) throws(CryptoError) {
    let named = key.application.bytes + key.holder.stored + key.scope.stored
    description = try ShortDigest.make(named)
  }
}

/// What commands name a row by: the first 8 bytes of the SHA-256 of its key, as hexadecimal digits.
enum ShortDigest {
  static func make(_ bytes: [UInt8]) throws(CryptoError) -> String {
    let digest = unsafe try SHA256.digest(bytes.span.bytes)
    return Array(digest.prefix(8)).hexadecimal
  }

  /// Reads 16 digits of either case; nil for any other text.
  static func read(_ text: String) -> String? {
    guard text.utf8.count == 16, text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
      return nil
    }
    return text.lowercased()
  }
}

/// Wall time of the tables: units of 100 ns since 1970.
extension Date {
  init(ticks: Int64) { self.init(timeIntervalSince1970: Double(ticks) / 1e7) }

  /// Dates before 1970 or after 2286 become the nearest one inside.
  var ticks: Int64 { Int64(min(max(timeIntervalSince1970 * 1e7, 0), 1e17 - 1).rounded()) }
}
