import MessagingQueue
import TestSupport
import Testing
import VaultCrypto

@testable import QueueReplication
@testable import Replication

extension FixtureTests {
  /// Reads any file to its end, as the last part of its name says.
  private static func read(_ name: String) throws {
    let bytes = try bytes(name)
    let seal = try RequestSeal(ring(), member: nodeKeys().member(), random: random)
    switch name.split(separator: ".").last {
    case "record":
      switch try record(bytes).body {
      case .commit(let messages): for next in messages { _ = try message(next) }
      case .operation(let bytes): _ = try operation(of: bytes)
      default: break
      }
    case "request": _ = try seal.openRequest(bytes)
    case "reply": _ = try seal.openReply(bytes, to: RequestID(0x4E), from: other)
    case "ring": _ = try KeyRing(decoding: SecretBytes(copying: bytes))
    case "node": _ = try NodeKeys(decoding: SecretBytes(copying: bytes))
    case "join": _ = try JoinRequest(parsing: bytes)
    case "invitation":
      let invitation = try Invitation(parsing: bytes)
      let keys = try nodeKeys()
      let contents = try invitation.open(
        with: keys, member: keys.member(), confirmed: invitation.fingerprint)
      _ = try JoinerSettings(decoding: contents.settings)
    case "settings": _ = try ClusterSettings(parsing: bytes)
    default: Issue.record("\(name) has no known kind")
    }
  }

  @Test(arguments: names("negative"))
  func `a file with one fault is refused with that fault's error`(name: String) throws {
    let error = #expect(throws: (any Error).self) { try Self.read("negative/\(name)") }
    #expect(error.map(Self.reason) == Self.expectedReason(name))
  }

  // MARK: Another reader

  private static let python = Program.python(
    with: "cryptography", variable: "DATAVAULT_JOSERFC_PYTHON", environment: "joserfc")
  private static let skipReason: Comment = """
    no python3 has cryptography: `pip install cryptography`, or name one that has it in \
    DATAVAULT_JOSERFC_PYTHON
    """

  @Test(.enabled(if: python != nil, skipReason), arguments: ["positive", "negative"])
  func `a reader that shares no code reads the same records`(folder: String) throws {
    let names = Self.names(folder, ".record").map { Self.path("\(folder)/\($0)") }
    let program = try Program.run(
      try #require(Self.python),
      [
        Repository.path("Tests/ReferenceReaders/replication_reader.py"),
        Self.path("positive/two-keys.ring"),
      ] + names)
    #expect(program.status == 0, "\(program.errors)")
    let refusals = program.text.split(separator: "\n").map { $0 == "refused" }
    #expect(refusals == names.map { _ in folder == "negative" })
  }

  /// What an error says, of whichever type it is.
  private static func reason(_ error: any Error) -> String {
    switch error {
    case let error as RecordError: error.reason
    case let error as RequestError: error.reason
    case let error as KeyRingError: error.reason
    case let error as NodeKeysError: error.reason
    case let error as JoinError: error.reason
    case let error as CryptoError: "\(error.code)"
    case let error as ReplicationError: "\(error.code)"
    case let error as EngineError: "\(error.code)"
    default: "\(error)"
    }
  }

  private static func expectedReason(_ name: String) -> String {
    let parts = name.split(separator: ".")
    let fault = String(parts[0])
    switch parts[1] {
    case "record": return recordReason(fault)
    case "request", "reply": return requestReason(fault)
    case "node":
      return (fault == "newer-version" ? NodeKeysError.unknownVersion : .wrongLength).reason
    case "join":
      let isVersion = ["newer-version", "version-as-text"].contains(fault)
      return (isVersion ? JoinError.unknownVersion : .notARequest).reason
    case "settings": return "\(ReplicationError.Code.damaged)"
    case "ring":
      return switch fault {
      case "newer-version": KeyRingError.unknownVersion.reason
      case "cut", "cut-in-the-header", "byte-behind-the-keys": KeyRingError.wrongLength.reason
      default: KeyRingError.numbersOutOfRange.reason
      }
    default:
      return switch fault {
      case "newer-version", "plaintext-empty": JoinError.unknownVersion.reason
      case "to-another-request": JoinError.otherRequest.reason
      case "ring-of-a-newer-version": KeyRingError.unknownVersion.reason
      case "joiner-key-of-31-bytes", "joiner-settings-missing":
        "\(ReplicationError.Code.damaged)"
      case "to-another-key", "header-written-otherwise": JoinError.notOpened.reason
      case let fault where fault.hasSuffix("flipped"): JoinError.notOpened.reason
      default: JoinError.notAnInvitation.reason
      }
    }
  }

  private static func recordReason(_ fault: String) -> String {
    switch fault {
    case "newer-version", "version-zero": RecordError.unknownVersion.reason
    case "cut-behind-the-header": "\(CryptoError.Code.invalidArgument)"
    case "key-not-in-the-ring": KeyRingError.noKey(2).reason
    case "kind-zero", "kind-fourteen", "settlement-outcome-five", "operation-kind-zero",
      "operation-kind-fourteen":
      RecordError.unknownKind.reason
    case "part-with-flag-four", "operation-cancel-without-a-list": RecordError.invalidFlag.reason
    case "commit-text-not-utf-8": RecordError.invalidText.reason
    case "operation-place-of-64-bits": RecordError.outOfRange.reason
    case "operation-without-a-channel": "\(EngineError.Code.invalidChannel)"
    case "operation-without-a-consumer": "\(EngineError.Code.invalidArgument)"
    case "byte-behind-the-last-field", "commit-of-fewer-than-it-has",
      "operation-byte-behind-the-end":
      RecordError.trailing.reason
    case "byte-behind-the-tag", "cut-in-the-tag", "number-of-another-key", "of-another-shard",
      "sealed-as-a-request":
      "\(CryptoError.Code.authenticationFailed)"
    case let fault where fault.hasSuffix("flipped"):
      "\(CryptoError.Code.authenticationFailed)"
    case let fault where fault.hasPrefix("content"): "\(EngineError.Code.damaged)"
    case let fault where fault.hasSuffix("flag-two"): RecordError.invalidFlag.reason
    default: RecordError.truncated.reason
    }
  }

  private static func requestReason(_ fault: String) -> String {
    switch fault {
    case "to-another-member": RequestError.otherRecipient.reason
    case "to-another-request", "from-another-member": RequestError.otherReply.reason
    case "key-not-in-the-ring": KeyRingError.noKey(2).reason
    case "of-another-shard", "sealed-as-a-record", "cut-in-the-tag":
      "\(CryptoError.Code.authenticationFailed)"
    case let fault where fault.hasSuffix("flipped"):
      "\(CryptoError.Code.authenticationFailed)"
    default: RequestError.unreadable.reason
    }
  }
}
