import Foundation
import TestSupport
import Testing

/// A published case of one construction, whose outcome the publisher states.
protocol Vector: Decodable, Sendable {
  /// The case's number in a Wycheproof file.
  var tcId: Int? { get }
  /// The case's name in a table of our own.
  var id: String? { get }
}

extension Vector {
  var name: String { id ?? "tcId \(tcId ?? 0)" }
}

/// The outcome that the publisher demands.
enum Outcome: String, Decodable, Sendable {
  case valid, invalid
  /// Both answers are right.
  case acceptable
}

struct Hex: Decodable, Sendable, Equatable {
  let bytes: [UInt8]

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let digits = Array(try container.decode(String.self).utf8)
    bytes = try stride(from: 0, to: digits.count, by: 2).map { index in
      guard
        index + 1 < digits.count,
        let byte = UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16)
      else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "not hexadecimal")
      }
      return byte
    }
  }
}

/// A table of cases: a compact one of `Fixtures/vectors`, or a whole Wycheproof file.
///
/// The Wycheproof files are optional, in a `shared` folder beside the checkout.
struct VectorFile<V: Vector>: Sendable {
  let vectors: [V]

  private struct CompactTable: Decodable { let vectors: [V] }

  private struct WycheproofTable: Decodable {
    struct Group: Decodable { let tests: [V] }
    let numberOfTests: Int
    let testGroups: [Group]
  }

  /// The compact table `name.json`.
  init(compact name: String) throws {
    let url = URL(filePath: Repository.path("Fixtures/vectors/\(name).json"))
    vectors = try JSONDecoder().decode(CompactTable.self, from: Data(contentsOf: url)).vectors
  }

  /// The whole file `name.json` as Wycheproof publishes it.
  init(wycheproof name: String) throws {
    let url = wycheproofFolder.appending(path: "\(name).json")
    let table = try JSONDecoder().decode(WycheproofTable.self, from: Data(contentsOf: url))
    vectors = table.testGroups.flatMap(\.tests)
    #expect(vectors.count == table.numberOfTests)
  }
}

private let wycheproofFolder = URL(filePath: Repository.path("../shared/vectors/wycheproof"))

extension Trait where Self == ConditionTrait {
  /// Runs the test only if the whole Wycheproof files are present; the compact tables always run.
  static var whereWycheproofIs: Self {
    .enabled(
      if: FileManager.default.fileExists(atPath: wycheproofFolder.path),
      "the whole Wycheproof files are not beside this checkout (../shared/vectors/wycheproof)")
  }
}

extension [UInt8] {
  /// The bytes in hexadecimal digits, as in tables.
  var hex: String {
    map { String(format: "%02x", $0) }.joined()
  }
}

/// The number of cases with each outcome, compared with expected numbers so that an empty run
/// fails.
struct VectorCounts: Equatable {
  /// Cases that were accepted with the published result.
  var matched = 0
  /// Cases that were refused as the publisher demands.
  var refused = 0
  /// Cases that were refused because we do not support their parameters: a key or nonce of another
  /// size.
  var notOffered = 0
}
