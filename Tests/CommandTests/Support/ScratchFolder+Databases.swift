import Foundation
import Testing

extension ScratchFolder {
  /// Writes a file that only its owner can read.
  func secret(_ name: String, _ bytes: [UInt8]) throws {
    let path = try file(name, bytes)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
  }

  /// Runs SQL in the sqlite3 shell, on a plain database of this folder, and returns the output.
  @discardableResult
  func shell(_ name: String, _ sql: String) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/sqlite3")
    process.arguments = ["-bail", path(name), sql]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    return String(decoding: text, as: UTF8.self)
  }
}
