import Foundation
import TestSupport
import Testing

/// The Python programs that encrypt and decrypt messages without our code.
struct PythonProgram {
  let skipReason: Comment
  private let script: String
  private let interpreter: String?

  var isAvailable: Bool { interpreter != nil }

  /// PubNub's own SDK.
  static let pubNub = PythonProgram(
    script: "pubnub_messages.py", module: "pubnub", package: "pubnub==10.8.0",
    variable: "DATAVAULT_PUBNUB_PYTHON", environment: "pubnub")

  /// The reader of DataVault's form, over the package `cryptography`, which joserfc needs too.
  static let reference = PythonProgram(
    script: "message_reader.py", module: "cryptography", package: "cryptography",
    variable: "DATAVAULT_JOSERFC_PYTHON", environment: "joserfc")

  private init(
    script: String, module: String, package: String, variable: String, environment: String
  ) {
    self.script = script
    interpreter = Program.python(with: module, variable: variable, environment: environment)
    skipReason = """
      no python3 has \(module): `pip install \(package)`, or name one that has it in \
      \(variable)
      """
  }

  struct Failure: Error {
    let status: Int32
    let errors: String
  }

  /// Sends a line of JSON for each case, and returns a line of JSON for each answer.
  func run(_ cases: [[String: Any]], _ arguments: String...) throws -> [Any] {
    let lines = try cases.map { try JSONSerialization.data(withJSONObject: $0) }
    let program = try Program.run(
      interpreter ?? "python3", [Repository.path("Tests/ReferenceReaders/\(script)")] + arguments,
      input: Array(lines.joined(separator: Data("\n".utf8))) + Array("\n".utf8))
    guard program.status == 0 else {
      throw Failure(status: program.status, errors: program.errors)
    }
    let answers = try program.output.split(separator: UInt8(ascii: "\n")).map {
      try JSONSerialization.jsonObject(with: Data($0), options: .fragmentsAllowed)
    }
    try #require(answers.count == cases.count)
    return answers
  }
}
