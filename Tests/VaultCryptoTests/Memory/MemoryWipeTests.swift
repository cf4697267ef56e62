import Foundation
import Testing

/// Runs the program that checks memory as the system gets it back.
///
/// `scripts/test` runs its release build; this suite runs it in the configuration of the tests.
@Suite struct MemoryWipeTests {
  @Test func `every secret is wiped before its memory is released to the system`() throws {
    let process = Process()
    process.executableURL = Bundle.main.bundleURL.appendingPathComponent("MemoryWipeTest")
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "\(text)")
    #expect(text.contains("not wiped: 0; a control was caught"))
  }
}
