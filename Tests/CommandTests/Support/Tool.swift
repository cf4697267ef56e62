import Foundation
import TestSupport
import Testing

/// The built programs.
///
/// Each runs in its own session, so that it has no terminal unless a test provides one.
struct Tool {
  /// Runs the program to its end, with standard input, output and error in files.
  static func run(
    _ arguments: [String], of program: String = Program.datavault, input: [UInt8] = [],
    environment: [String: String] = [:],
    descriptors: [Int32: [UInt8]] = [:], through wrapper: [String] = []
  ) throws -> Program {
    let files = ScratchFolder()
    let child = try Child(
      arguments, of: program, environment: environment,
      descriptors: [
        0: .reading(files.file("input", input)), 1: .writing(files.path("output")),
        2: .writing(files.path("errors")),
      ].merging(
        descriptors.map { ($0, .reading(try files.file("descriptor\($0)", $1))) },
        uniquingKeysWith: { $1 }),
      through: wrapper)
    let status = child.wait()
    return Program(
      status: status, output: try files.bytes("output"),
      errors: String(decoding: try files.bytes("errors"), as: UTF8.self))
  }
}

extension Program {
  /// The lines of the output.
  var lines: [String] { text.split(separator: "\n").map(String.init) }

  /// The JSON object of each line of the output.
  var objects: [[String: Any]] {
    get throws {
      try lines.map { line in
        try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      }
    }
  }

  /// Expects an exit code, errors that contain some texts, and output that contains others.
  ///
  /// - Parameter subject: names one of several cases in a failure.
  @discardableResult
  func expect(
    _ status: Int32, of subject: String = "", says texts: String..., prints outputs: String...,
    sourceLocation: SourceLocation = #_sourceLocation
  ) -> Program {
    #expect(self.status == status, "\(subject) \(errors)", sourceLocation: sourceLocation)
    for text in texts {
      #expect(errors.contains(text), "\(subject) \(errors)", sourceLocation: sourceLocation)
    }
    for output in outputs {
      #expect(text.contains(output), "\(text)", sourceLocation: sourceLocation)
    }
    return self
  }
}
