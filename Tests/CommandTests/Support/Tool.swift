import Foundation
import Glibc

/// The built `datavault`.
///
/// It runs in its own session, so that it has no terminal unless a test provides one.
struct Tool {
  /// The result of a finished process.
  struct Outcome {
    var status: Int32
    var output: [UInt8]
    var errors: String

    var text: String { String(decoding: output, as: UTF8.self) }
  }

  static let path: String = {
    if let path = ProcessInfo.processInfo.environment["DATAVAULT_EXECUTABLE"] { return path }
    return Bundle.main.bundleURL.appendingPathComponent("datavault").path
  }()

  /// Runs the program to its end, with standard input, output and error in files.
  static func run(
    _ arguments: [String], input: [UInt8] = [], environment: [String: String] = [:],
    descriptors: [Int32: [UInt8]] = [:], through wrapper: [String] = []
  ) throws -> Outcome {
    let files = try ScratchFolder()
    let child = try Child(
      arguments, environment: environment,
      descriptors: [
        0: .reading(files.file("input", input)), 1: .writing(files.path("output")),
        2: .writing(files.path("errors")),
      ].merging(
        descriptors.map { ($0, .reading(try files.file("descriptor\($0)", $1))) },
        uniquingKeysWith: { $1 }),
      through: wrapper)
    let status = child.wait()
    return Outcome(
      status: status, output: try files.bytes("output"),
      errors: String(decoding: try files.bytes("errors"), as: UTF8.self))
  }
}

/// A temporary folder, which `deinit` removes.
final class ScratchFolder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory
      .appendingPathComponent("datavault-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  func path(_ name: String) -> String { url.appendingPathComponent(name).path }

  /// Writes a file that only its owner can read, and returns its path.
  func file(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
    try Data(bytes).write(to: url.appendingPathComponent(name))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path(name))
    return path(name)
  }

  func bytes(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: url.appendingPathComponent(name)))
  }

  deinit {
    try? FileManager.default.removeItem(at: url)
  }
}
