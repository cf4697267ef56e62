import DataVault
import Foundation
import Testing

@testable import SecretServiceStore

/// Services that give wrong answers: each causes an error, never "no vault", and no existing item
/// is overwritten.
@Suite struct HostileServiceTests {
  private static let kept = Array("a vault".utf8)

  /// The kinds of wrong answers.
  enum Fault: CaseIterable, Sendable {
    case otherType, nothing, nested, refused, unknownObject, garbage, hangUp, silence, stopsReading

    /// A short timeout for services that never answer, to keep the test short.
    var timeouts: BusTimeouts {
      switch self {
      case .silence, .stopsReading: BusTimeouts(answer: .seconds(2), conversation: .seconds(60))
      default: .standard
      }
    }

    /// The errors with which a change can fail; on a busy machine a short timeout can expire before
    /// the change.
    var changeFailures: Set<VaultError.Code> {
      switch self {
      case .silence, .stopsReading: [.writeFailed, .storeUnavailable]
      default: [.writeFailed]
      }
    }

    var answer: HostileBus.Answer {
      switch self {
      case .otherType: .values(BusBody().number(7))
      case .nothing: .values(BusBody())
      case .nested: .values(BusBody().variant { $0.variant { $0.variant { $0.string("") } } })
      case .refused: .error("org.freedesktop.DBus.Error.Failed", "no")
      case .unknownObject: .error("org.freedesktop.Secret.Error.NoSuchObject", "no")
      case .garbage: .bytes([UInt8](repeating: 0xA5, count: 4096))
      case .hangUp: .hangUp
      case .silence: .silence
      case .stopsReading: .stopsReading
      }
    }
  }

  private func bus(_ kept: [UInt8]?, _ fault: Fault, at member: String) -> HostileBus {
    .keeping(kept) { $0.member == member && !$0.isIntroduction ? fault.answer : nil }
  }

  /// Expects that a read is answered neither with a vault nor with its absence.
  private func expectFailure(
    of bus: HostileBus, _ fault: Fault, sourceLocation: SourceLocation = #_sourceLocation,
    _ read: (SecretServiceStore) throws -> Void
  ) {
    let failure = bus.code(fault.timeouts, read)
    #expect(
      failure == .unreadable || failure == .storeUnavailable, "\(String(describing: failure))",
      sourceLocation: sourceLocation)
  }

  @Test func `a store introduces itself before the calls that would crash the service`() throws {
    let bus = HostileBus.keeping(Self.kept) { $0.isFirst && !$0.isIntroduction ? .hangUp : nil }
    #expect(bus.code { _ = try $0.read(.messaging) } == nil)
    #expect(bus.code { try $0.write(Self.kept, for: .messaging) } == nil)
    #expect(bus.code { _ = try $0.ids() } == nil)
  }

  @Test(arguments: Fault.allCases)
  func `a wrong answer to the introduction is an error`(fault: Fault) throws {
    let bus = HostileBus.keeping(nil) { $0.isIntroduction ? fault.answer : nil }
    expectFailure(of: bus, fault) { _ = try $0.read(.messaging) }
    #expect(bus.count(of: "OpenSession") == 0)
  }

  @Test(arguments: ["OpenSession", "SearchItems", "Get", "GetSecret"], Fault.allCases)
  func `a wrong answer is never taken for a vault or for its absence`(member: String, fault: Fault)
    throws
  {
    let bus = bus(Self.kept, fault, at: member)
    expectFailure(of: bus, fault) { _ = try $0.read(.messaging) }
    if member != "GetSecret" { expectFailure(of: bus, fault) { _ = try $0.ids() } }
  }

  @Test(arguments: ["SearchItems", "ReadAlias", "Get"], Fault.allCases)
  func `without an item a wrong answer is never taken for an absent vault`(
    member: String, fault: Fault
  ) throws {
    let bus = bus(nil, fault, at: member)
    expectFailure(of: bus, fault) { _ = try $0.read(.messaging) }
    #expect(bus.code(fault.timeouts) { try $0.write([1], for: .messaging) } != nil)
    #expect(bus.count(of: "CreateItem") == 0)
  }

  @Test(arguments: Fault.allCases)
  func `a change with a wrong answer is not reported as done`(fault: Fault) throws {
    func look(
      _ kept: [UInt8]?, at member: String, _ change: (SecretServiceStore) throws -> Void
    ) throws {
      let failure = bus(kept, fault, at: member).code(fault.timeouts, change)
      #expect(fault.changeFailures.contains(try #require(failure)), "\(member)")
    }
    try look(nil, at: "CreateItem") { try $0.write([1], for: .messaging) }
    try look(Self.kept, at: "Delete") { try $0.remove(.messaging) }
    // For a method without a result, an empty answer is right.
    if fault == .nothing { return }
    try look(Self.kept, at: "SetSecret") { try $0.write([1], for: .messaging) }
    try look(Self.kept, at: "Set") { _ = try $0.retire(.messaging) }
  }

  @Test func `a bus that stops reading in the middle of a large vault causes a timeout`() throws {
    let large = [UInt8](repeating: 0x61, count: 16 << 20)
    // The last call that the bus reads is the query before the write.
    let bus = HostileBus.keeping(Self.kept) { call in
      guard call.member == "Get", !call.mentions("Locked") else { return nil }
      return .lastValues(BusBody().variant { $0.texts(HostileBus.Healthy.attributes) })
    }
    let failure = bus.code(Fault.stopsReading.timeouts) { try $0.write(large, for: .messaging) }
    #expect(Fault.stopsReading.changeFailures.contains(try #require(failure)))
  }

  @Test func `an item that does not match the search is never read or changed`() throws {
    for foreign in [
      [], [("application", "datavault"), ("home", "/another"), ("vault", "messaging")],
    ] {
      let bus = HostileBus.keeping(Self.kept) { call in
        guard call.member == "Get", !call.mentions("Locked") else { return nil }
        return .values(BusBody().variant { $0.texts(foreign) })
      }
      #expect(bus.code { _ = try $0.read(.messaging) } == .unreadable)
      #expect(bus.code { _ = try $0.ids() } == .unreadable)
      #expect(bus.code { try $0.write([1], for: .messaging) } == .writeFailed)
      #expect(bus.code { try $0.remove(.messaging) } == .writeFailed)
      #expect(bus.code { _ = try $0.retire(.messaging) } == .writeFailed)
      for change in ["SetSecret", "CreateItem", "Delete", "Set"] {
        #expect(bus.count(of: change) == 0, "\(change)")
      }
    }
  }

  @Test func `a vault that the service has stored otherwise does not get its name`() throws {
    // The service says that the new item has no bytes.
    let bus = HostileBus.keeping(nil) { _ in nil }
    #expect(bus.code { try $0.write([1], for: .messaging) } == .writeFailed)
    #expect(bus.count(of: "CreateItem") == 1)
    #expect(bus.count(of: "Set") == 0)
  }

  @Test func `an item is removed as unfinished only if it has that attribute`() throws {
    // A service that ignores the attribute's name finds the vault.
    let bus = HostileBus.keeping(nil) {
      $0.member == "SearchItems" && $0.mentions("unfinished")
        ? HostileBus.Healthy.found([HostileBus.Healthy.item]) : nil
    }
    #expect(bus.code { try $0.write([1], for: .messaging) } == .writeFailed)
    #expect(bus.count(of: "Delete") == 0)
  }

  @Test func `a vault that a locked keyring hides is not taken for absent`() throws {
    // The search comes before the login that unlocks the keyring, the query for the lock after it.
    let bus = HostileBus.keeping(Self.kept) {
      $0.member == "SearchItems" && $0.earlierCount == 0 ? HostileBus.Healthy.found([]) : nil
    }
    var found: [UInt8]?
    #expect(bus.code { found = try $0.read(.messaging) } == nil)
    #expect(found == Self.kept)
    let hiding = HostileBus.keeping(nil) {
      $0.mentions("Locked") ? .values(BusBody().variant { $0.flag(true) }) : nil
    }
    #expect(hiding.code { _ = try $0.read(.messaging) } == .storeLocked)
    #expect(hiding.code { try $0.write([1], for: .messaging) } == .storeLocked)
  }

  @Test func `a store never waits for a prompt`() throws {
    let prompt = HostileBus.Healthy.prompt
    let making = HostileBus.keeping(nil) {
      $0.member == "CreateItem" ? .values(BusBody().path("/").path(prompt)) : nil
    }
    #expect(making.code { try $0.write([1], for: .messaging) } == .storeLocked)
    let removing = HostileBus.keeping(Self.kept) {
      $0.member == "Delete" ? .values(BusBody().path(prompt)) : nil
    }
    #expect(removing.code { try $0.remove(.messaging) } == .storeLocked)
    #expect(making.count(of: "Prompt") == 0 && removing.count(of: "Prompt") == 0)
  }

  @Test func `a service that delays each answer cannot exceed the timeout of the conversation`()
    throws
  {
    let bus = HostileBus.keeping(Self.kept) { call in
      switch call.member {
      case "SearchItems":
        return HostileBus.Healthy.found([String](repeating: HostileBus.Healthy.item, count: 200))
      case "Get":
        // The service is slow on purpose.
        Thread.sleep(forTimeInterval: 0.1)
        return nil
      default: return nil
      }
    }
    let timeouts = BusTimeouts(answer: .seconds(25), conversation: .seconds(2))
    #expect(bus.code(timeouts) { _ = try $0.ids() } == .storeUnavailable)
    #expect(bus.count(of: "Get") < 100)
  }

  @Test func `the timeout of the conversation limits the wait for one answer`() throws {
    let isDone = DispatchSemaphore(value: 0)
    let bus = HostileBus.keeping(Self.kept) { call in
      // A longer wait would get an answer.
      if call.member == "GetSecret" { _ = isDone.wait(timeout: .now() + 20) }
      return nil
    }
    let timeouts = BusTimeouts(answer: .seconds(600), conversation: .seconds(2))
    #expect(bus.code(timeouts) { _ = try $0.read(.messaging) } == .storeUnavailable)
    isDone.signal()
  }

  @Test func `a store waits at most 25 seconds for an answer and a minute for all`() {
    let timeouts = SecretServiceStore(home: HostileBus.Healthy.home).busTimeouts
    #expect(timeouts.answer == .seconds(25))
    #expect(timeouts.conversation == .seconds(60))
  }

  @Test func `an answer above the maximum size is not parsed`() throws {
    let many = HostileBus.keeping(Self.kept) {
      $0.member == "SearchItems"
        ? HostileBus.Healthy.found([String](repeating: "/", count: 200_000)) : nil
    }
    #expect(many.code { _ = try $0.read(.messaging) } == .unreadable)
    #expect(many.count(of: "Get") < 100, "none of them was looked at")
    let confused = HostileBus.keeping(Self.kept) {
      $0.member == "GetSecret"
        ? HostileBus.Healthy.found([String](repeating: "/", count: 1 << 20)) : nil
    }
    #expect(confused.code { _ = try $0.read(.messaging) } == .unreadable)
  }

  @Test func `an error message of the service is truncated to one line`() throws {
    let text = "\u{1B}[31mred\r\n" + String(repeating: "x", count: 1 << 20)
    let bus = HostileBus.keeping(Self.kept) {
      $0.member == "GetSecret" ? .error("org.freedesktop.DBus.Error.Failed", text) : nil
    }
    var message = ""
    let failure = bus.code { (store) throws(VaultError) in
      do throws(VaultError) {
        _ = try store.read(.messaging)
      } catch {
        message = error.message
        throw error
      }
    }
    #expect(failure == .unreadable)
    #expect(message.contains("[31mred"))
    #expect(message.unicodeScalars.count < 1000)
    #expect(!message.unicodeScalars.contains { $0.properties.generalCategory == .control })
  }
}
