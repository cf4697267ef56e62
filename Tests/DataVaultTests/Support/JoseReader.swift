import Foundation
import SystemPackage
import TestSupport
import Testing

/// The Python program that reads and writes vaults with joserfc.
enum JoseReader {
  static let skipReason: Comment = """
    no python3 has joserfc: `pip install joserfc==1.6.5`, or name one that has it in \
    DATAVAULT_JOSERFC_PYTHON
    """

  /// The first interpreter that has the library.
  static let interpreter = Program.python(
    with: "joserfc", variable: "DATAVAULT_JOSERFC_PYTHON", environment: "joserfc")

  static var isAvailable: Bool { interpreter != nil }

  /// The contents of a vault according to the program: clear members and contents in one object.
  ///
  /// - Parameter options: `--password`, `--salt`, `--recovery-code`, `--key-file`, each with a file.
  static func open(_ vault: FilePath, by options: [String: FilePath]) throws -> [String: Any] {
    let output = try runReader("open", vault, options)
    return try JSONSerialization.jsonObject(with: Data(output)) as? [String: Any] ?? [:]
  }

  /// Lets the program write a vault; the file's name is its id.
  ///
  /// - Parameter slots: options as for ``open(_:by:)``; the program draws a missing recovery code.
  static func write(_ vault: FilePath, slots: [String: FilePath], items: String) throws {
    _ = try runReader("write", vault, slots, input: Array(items.utf8))
  }

  /// Lets the other program seal or open data; see `Tests/ReferenceReaders/data_reader.py`.
  static func data(
    _ operation: String, key: FilePath, context: FilePath, input: [UInt8]
  ) throws -> [UInt8] {
    try run(
      "Tests/ReferenceReaders/data_reader.py", [operation, key.string, context.string],
      input: input)
  }

  /// Lets `Fixtures/vaults/make.py` make the vaults that are too large to keep.
  static func makeLargeVaults(in folder: FilePath) throws {
    _ = try run("Fixtures/vaults/make.py", [folder.string])
  }

  /// Lets `Tests/ReferenceReaders/mutations.py` remove each check from a reference reader.
  ///
  /// It fails unless exactly the fixtures for that check detect the removal.
  static func removeChecks(of kind: String) throws {
    print(String(decoding: try run("Tests/ReferenceReaders/mutations.py", [kind]), as: UTF8.self))
  }

  private static func runReader(
    _ operation: String, _ vault: FilePath, _ options: [String: FilePath], input: [UInt8] = []
  ) throws -> [UInt8] {
    let arguments = [operation, vault.string] + options.flatMap { [$0, $1.string] }
    return try run("Tests/ReferenceReaders/vault_reader.py", arguments, input: input)
  }

  struct Failure: Error {
    let status: Int32
    let output: String
  }

  /// Runs a program of this repository.
  private static func run(
    _ script: String, _ arguments: [String], input: [UInt8] = []
  ) throws -> [UInt8] {
    let reader = try Program.run(
      interpreter ?? "python3", [Repository.path(script)] + arguments, input: input)
    guard reader.status == 0 else { throw Failure(status: reader.status, output: reader.errors) }
    return reader.output
  }
}
