import Foundation
import TestSupport
import Testing
import VaultCrypto

@testable import DataVault

/// A case of `Fixtures/vectors/json-web-encryption.json`, and the result of our reader for it.
///
/// The reader accepts only a vault's JWEs, whose headers are fixed. A case is therefore split into
/// a recipient, a sealed box and a header, and each goes to its part of the reader.
struct JWEVector: Decodable, Sendable, CustomTestStringConvertible {
  let id: String
  let comment: String?
  let key: String
  let jwe: String?
  let pt: String?
  let result: String
  // Only in the RFC's case, whose contents have an algorithm that we do not support.
  let header: String?
  let encryptedKey: String?
  let contentKey: String?

  var testDescription: String { id }

  private struct Table: Decodable { let vectors: [JWEVector] }

  static let all: [JWEVector] = {
    let path = Repository.path("Fixtures/vectors/json-web-encryption.json")
    let table = FileManager.default.contents(atPath: path).flatMap {
      try? JSONDecoder().decode(Table.self, from: $0)
    }
    return table?.vectors ?? []
  }()

  static let wycheproof = all.filter { $0.jwe != nil }

  /// The last step that the reader reaches.
  enum Reach: Equatable {
    /// Not five parts of canonical base64url, or a header that is not an object.
    case malformed
    /// The recipient is not a slot: it has another algorithm, or a wrapped key of another length.
    case noSlot
    /// The slot does not unwrap.
    case wrongKey
    /// The nonce or the tag has another length.
    case noBox
    case notAuthentic
    case opened([UInt8])
  }

  /// The parts of the compact serialization, still encoded.
  var parts: [String] {
    (jwe ?? "").split(separator: ".", omittingEmptySubsequences: false).map(String.init)
  }

  var algorithm: String? { headerMember("alg") }

  var isWhole: Bool { parts.count == 5 && parts.allSatisfy { Self.bytes($0) != nil } }

  func headerMember(_ name: String) -> String? {
    guard let header = parts.first.flatMap(Self.bytes) else { return nil }
    let object = try? JSONSerialization.jsonObject(with: Data(header)) as? [String: Any]
    return object?[name] as? String
  }

  /// The bytes of canonical base64url, by our reader; nil for anything else.
  static func bytes(_ text: String) -> [UInt8]? {
    let text = Array(text.utf8)
    return try? Base64URL.decode(text.span.bytes, 0..<text.count, of: "a test")
  }

  func secretKey() throws -> SecretBytes { SecretBytes(copying: try #require(Self.bytes(key))) }

  /// Reads the case as a slot for a key file.
  func read() throws -> Reach {
    guard isWhole, let algorithm else { return .malformed }
    let slot: KeySlot
    do throws(FormatFault) {
      slot = try Self.slot(
        #"{"alg":"\#(algorithm)","kid":"keyfile:wycheproof"}"#, encryptedKey: parts[1])
    } catch {
      return .noSlot
    }
    guard let contentKey = try slot.contentKey(with: .keyFile(secretKey())) else {
      return .wrongKey
    }
    return Self.open(parts, with: contentKey)
  }

  /// Opens nonce, ciphertext and tag as those of a vault's JWE.
  static func open(_ parts: [String], with contentKey: borrowing SecretBytes) -> Reach {
    let members = parts[2...].map { Array("\"\($0)\"".utf8) }
    let text = members.flatMap(\.self)
    let ends = members.reduce(into: [0]) { $0.append(($0.last ?? 0) + $1.count) }
    do throws(FormatFault) {
      let (nonce, box) = try JWEText.sealedBox(
        text.span.bytes, nonce: ends[0]..<ends[1], ciphertext: ends[1]..<ends[2],
        tag: ends[2]..<ends[3], of: "a test")
      let plaintext = try? AES256GCM.open(
        box, key: contentKey, nonce: nonce, authenticating: Array(parts[0].utf8).span.bytes)
      switch consume plaintext {
      case .none: return .notAuthentic
      case .some(let plaintext): return .opened(plaintext.array())
      }
    } catch {
      return .noBox
    }
  }

  static func slot(_ header: String, encryptedKey: String) throws(FormatFault) -> KeySlot {
    let text = Array(#"{"header":\#(header),"encrypted_key":"\#(encryptedKey)"}"#.utf8)
    return try KeySlot(parsing: text.span.bytes, 0..<text.count)
  }
}
