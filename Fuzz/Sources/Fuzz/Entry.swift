import Foundation

/// A harness: what it does with an input, and what it leaves behind otherwise.
private struct Harness {
  let run: (UnsafeBufferPointer<UInt8>) -> Void
  var remove: () -> Void = {}

  /// The one that `FUZZ_HARNESS` names; nil where there is none of that name.
  static func named(_ name: String, _ environment: [String: String]) throws -> Harness? {
    switch name {
    case "vault":
      return environment["FUZZ_VAULT"].flatMap { VaultFixture(template: $0) }.map {
        Harness(run: $0.run)
      }
    case "retry": return Harness(run: RetryFixture().run)
    case "data": return Harness(run: DataFixture().run)
    case "lines": return Harness(run: LineFixture().run)
    case "first-page":
      let bench = try FirstPageFixture()
      return Harness(run: bench.run, remove: bench.remove)
    case "super-journal":
      let bench = try SuperJournalFixture()
      return Harness(run: bench.run, remove: bench.remove)
    case "partial":
      let bench = try PartialFileFixture()
      return Harness(run: bench.run, remove: bench.remove)
    default:
      guard let bench = try Workbench.Kind(rawValue: name).map({ try Workbench($0) }) else {
        return nil
      }
      return Harness(run: bench.run, remove: bench.remove)
    }
  }
}

/// Ends the run with a sentence, which a precondition of a release build leaves out.
func require(_ condition: Bool, _ finding: @autoclosure () -> String) {
  if condition { return }
  FileHandle.standardError.write(Data("fuzz: \(finding())\n".utf8))
  preconditionFailure("a finding")
}

// nonisolated(unsafe): libFuzzer calls from one thread.
nonisolated(unsafe) private let harness: Harness? = {
  let environment = ProcessInfo.processInfo.environment
  let found = try? Harness.named(environment["FUZZ_HARNESS"] ?? "database", environment)
  atexit { harness?.remove() }
  return found
}()

/// libFuzzer's entry: <https://llvm.org/docs/LibFuzzer.html>.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  guard let harness else { preconditionFailure("no harness of that name") }
  harness.run(UnsafeBufferPointer(start: start, count: count))
  return 0
}
