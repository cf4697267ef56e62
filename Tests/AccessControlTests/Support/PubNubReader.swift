import Foundation
import TestSupport
import Testing

/// The Python program that speaks as the stock PubNub SDK does.
enum PubNubReader {
  static let reason: Comment = """
    no python3 has pubnub: `pip install pubnub==10.8.0`, or name one that has it in \
    DATAVAULT_PUBNUB_PYTHON
    """

  static let python = Program.python(
    with: "pubnub, cbor2", variable: "DATAVAULT_PUBNUB_PYTHON", environment: "pubnub")

  static var isAvailable: Bool { python != nil }

  /// The lines that a command of `Tests/ReferenceReaders/pubnub_reader.py` prints.
  static func lines(_ command: String, input: [String] = []) throws -> [String] {
    let script = Repository.path("Tests/ReferenceReaders/pubnub_reader.py")
    let program = try Program.run(
      try #require(python), ["-W", "ignore", script, command],
      input: Array(input.map { $0 + "\n" }.joined().utf8))
    guard program.status == 0 else { throw PubNubReaderError(errors: program.errors) }
    return program.text.split(separator: "\n").map(String.init)
  }

  /// The objects that a command prints, one a line.
  static func objects(_ command: String, input: [String] = []) throws -> [[String: Any]] {
    try lines(command, input: input).map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
  }
}

struct PubNubReaderError: Error { let errors: String }
