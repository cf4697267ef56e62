import Foundation

/// The harness that `FUZZ_HARNESS` names: `database`, `log` or `journal`.
// nonisolated(unsafe): libFuzzer calls from one thread.
nonisolated(unsafe) private let workbench: Workbench? = {
  let name = ProcessInfo.processInfo.environment["FUZZ_HARNESS"] ?? "database"
  let made = Workbench.Kind(rawValue: name).flatMap { try? Workbench($0) }
  atexit { workbench?.remove() }
  return made
}()

/// libFuzzer's entry: <https://llvm.org/docs/LibFuzzer.html>.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  guard let workbench else { preconditionFailure("no harness of that name") }
  workbench.run(UnsafeBufferPointer(start: start, count: count))
  return 0
}
