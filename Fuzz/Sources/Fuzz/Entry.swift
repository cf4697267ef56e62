import Foundation

/// A harness: a function that runs an input, and one that removes the harness's files.
private struct Harness {
  let run: (UnsafeBufferPointer<UInt8>) -> Void
  var remove: () -> Void = {}

  /// The harness of this name, which `FUZZ_HARNESS` gives; nil if there is none.
  static func named(_ name: String, _ environment: [String: String]) throws -> Harness? {
    switch name {
    case "vault":
      return environment["FUZZ_VAULT"].flatMap { VaultFixture(template: $0) }.map {
        Harness(run: $0.run)
      }
    case "retry": return Harness(run: RetryFixture().run)
    case "data": return Harness(run: DataFixture().run)
    case "lines": return Harness(run: LineFixture().run)
    case "messages": return Harness(run: try MessageFixture().run)
    case "token": return Harness(run: TokenFixture().run)
    case "signature": return Harness(run: SignatureFixture().run)
    case "target": return Harness(run: TargetFixture().run)
    case "json": return Harness(run: JSONFixture().run)
    case "filter": return Harness(run: FilterFixture().run)
    case "websocket": return Harness(run: WebSocketFixture().run)
    case "pusher": return Harness(run: PusherFixture().run)
    case "stomp": return Harness(run: STOMPFixture().run)
    case "credentials": return Harness(run: CredentialsFixture().run)
    case "challenges": return Harness(run: ChallengeFixture().run)
    case "client": return Harness(run: ClientFixture().run)
    case "replication": return Harness(run: ReplicationFixture().run)
    case "first-page":
      let fixture = try FirstPageFixture()
      return Harness(run: fixture.run, remove: fixture.remove)
    case "super-journal":
      let fixture = try SuperJournalFixture()
      return Harness(run: fixture.run, remove: fixture.remove)
    case "partial":
      let fixture = try PartialFileFixture()
      return Harness(run: fixture.run, remove: fixture.remove)
    default:
      guard let fixture = try Workbench.Kind(rawValue: name).map({ try Workbench($0) }) else {
        return nil
      }
      return Harness(run: fixture.run, remove: fixture.remove)
    }
  }
}

/// Ends the run with a message.
///
/// A release build would omit the message of a precondition.
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

/// libFuzzer's entry point: <https://llvm.org/docs/LibFuzzer.html>.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  guard let harness else { preconditionFailure("FUZZ_HARNESS does not name a harness") }
  harness.run(UnsafeBufferPointer(start: start, count: count))
  return 0
}
