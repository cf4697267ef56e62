import Foundation

/// The harness that `FUZZ_HARNESS` names: `database`, `log`, `journal`, `vault`, `retry`, `data` or `lines`.
// nonisolated(unsafe): libFuzzer calls from one thread.
nonisolated(unsafe) private let harness: ((UnsafeBufferPointer<UInt8>) -> Void)? = {
  let environment = ProcessInfo.processInfo.environment
  let name = environment["FUZZ_HARNESS"] ?? "database"
  if name == "vault" {
    return environment["FUZZ_VAULT"].flatMap { VaultBench(template: $0) }.map { $0.run }
  }
  if name == "retry" { return RetryBench().run }
  if name == "data" { return DataBench().run }
  if name == "lines" { return LineBench().run }
  workbench = Workbench.Kind(rawValue: name).flatMap { try? Workbench($0) }
  atexit { workbench?.remove() }
  return workbench.map { $0.run }
}()

// nonisolated(unsafe): set once, by the thread that fuzzes.
nonisolated(unsafe) private var workbench: Workbench?

/// libFuzzer's entry: <https://llvm.org/docs/LibFuzzer.html>.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  guard let harness else { preconditionFailure("no harness of that name") }
  harness(UnsafeBufferPointer(start: start, count: count))
  return 0
}
