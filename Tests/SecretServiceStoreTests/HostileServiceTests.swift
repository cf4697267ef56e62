import DataVault
import Foundation
import Testing

@testable import SecretServiceStore

/// Services that answer what no service should: each ends with an error, never with "no vault", and
/// nothing is written over what is there.
@Suite struct HostileServiceTests {
  private static let kept = Array("a vault".utf8)

  /// How an answer is wrong.
  enum Fault: CaseIterable, Sendable {
    case otherType, nothing, nested, refused, unknownObject, garbage, hangUp, silence, deafness

    /// Who never answers is waited for no longer than a test may last.
    var patience: BusTimeouts {
      switch self {
      case .silence, .deafness: BusTimeouts(answer: .seconds(2), conversation: .seconds(60))
      default: .standard
      }
    }

    /// What a change may fail with; on a busy machine such a short wait may be over before the change.
    var changeFailures: Set<VaultError.Code> {
      switch self {
      case .silence, .deafness: [.writeFailed, .storeUnavailable]
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
      case .deafness: .deafness
      }
    }
  }

  private func bus(
    _ kept: [UInt8]?, _ fault: Fault, at member: String
  ) -> HostileBus {
    .keeping(kept) { $0.member == member && !$0.isKnock ? fault.answer : nil }
  }

  @Test func `a service that ends when it does not know its caller yet is left alive`() throws {
    let bus = HostileBus.keeping(Self.kept) { $0.isFirst && !$0.isKnock ? .hangUp : nil }
    for failure in [
      bus.code { _ = try $0.read(.messaging) },
      bus.code { try $0.write(Self.kept, for: .messaging) },
      bus.code { _ = try $0.ids() },
    ] {
      #expect(failure == nil)
    }
  }

  @Test(arguments: Fault.allCases)
  func `a knock that is not answered as it should be is an error`(fault: Fault) throws {
    let bus = HostileBus.keeping(nil) { $0.isKnock ? fault.answer : nil }
    let failure = bus.code(fault.patience) { _ = try $0.read(.messaging) }
    #expect(
      failure == .unreadable || failure == .storeUnavailable, "\(String(describing: failure))")
    #expect(bus.count(of: "OpenSession") == 0)
  }

  @Test(arguments: ["OpenSession", "SearchItems", "Get", "GetSecret"], Fault.allCases)
  func `no wrong answer is taken for a vault, or for none`(member: String, fault: Fault) throws {
    let bus = bus(Self.kept, fault, at: member)
    let failure = bus.code(fault.patience) { _ = try $0.read(.messaging) }
    #expect(
      failure == .unreadable || failure == .storeUnavailable, "\(String(describing: failure))")
    if member != "GetSecret" {
      let failure = bus.code(fault.patience) { _ = try $0.ids() }
      #expect(failure == .unreadable || failure == .storeUnavailable)
    }
  }

  @Test(arguments: ["SearchItems", "ReadAlias", "Get"], Fault.allCases)
  func `without an item no wrong answer is taken for an absent vault`(
    member: String, fault: Fault
  ) throws {
    let bus = bus(nil, fault, at: member)
    let failure = bus.code(fault.patience) { _ = try $0.read(.messaging) }
    #expect(
      failure == .unreadable || failure == .storeUnavailable, "\(String(describing: failure))")
    #expect(bus.code(fault.patience) { try $0.write([1], for: .messaging) } != nil)
    #expect(bus.count(of: "CreateItem") == 0)
  }

  @Test(arguments: Fault.allCases)
  func `a change that was not taken as it should be is not said to be done`(fault: Fault) throws {
    func look(
      _ kept: [UInt8]?, at member: String, _ change: (SecretServiceStore) throws -> Void
    ) throws {
      let failure = bus(kept, fault, at: member).code(fault.patience, change)
      #expect(fault.changeFailures.contains(try #require(failure)), "\(member)")
    }
    try look(nil, at: "CreateItem") { try $0.write([1], for: .messaging) }
    try look(Self.kept, at: "Delete") { try $0.remove(.messaging) }
    // A method without a result has nothing else to say than nothing.
    if fault == .nothing { return }
    try look(Self.kept, at: "SetSecret") { try $0.write([1], for: .messaging) }
    try look(Self.kept, at: "Set") { _ = try $0.retire(.messaging) }
  }

  @Test func `a bus that stops reading in the middle of a large vault is given up`() throws {
    let large = [UInt8](repeating: 0x61, count: 16 << 20)
    // The last that it reads is the question before.
    let bus = HostileBus.keeping(Self.kept) { call in
      guard call.member == "Get", !call.mentions("Locked") else { return nil }
      return .lastValues(BusBody().variant { $0.texts(HostileBus.Healthy.attributes) })
    }
    let failure = bus.code(Fault.deafness.patience) { try $0.write(large, for: .messaging) }
    #expect(Fault.deafness.changeFailures.contains(try #require(failure)))
  }

  @Test func `an item that was not asked for is neither read, replaced, removed nor renamed`()
    throws
  {
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

  @Test func `what is said to be unfinished is removed only if it is`() throws {
    // A service that does not look at the attribute's name finds the vault.
    let bus = HostileBus.keeping(nil) {
      $0.member == "SearchItems" && $0.mentions("unfinished")
        ? HostileBus.Healthy.found([HostileBus.Healthy.item]) : nil
    }
    #expect(bus.code { try $0.write([1], for: .messaging) } == .writeFailed)
    #expect(bus.count(of: "Delete") == 0)
  }

  @Test func `a vault that is hidden until the keyring is unlocked is not taken for absent`() throws
  {
    // Searched while locked, asked for its lock after the owner has logged in.
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

  @Test func `a prompt is never waited for`() throws {
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

  @Test func `a service that answers each call just in time is not followed for ever`() throws {
    let bus = HostileBus.keeping(Self.kept) { call in
      switch call.member {
      case "SearchItems":
        return HostileBus.Healthy.found([String](repeating: HostileBus.Healthy.item, count: 200))
      case "Get":
        Thread.sleep(forTimeInterval: 0.1)
        return nil
      default: return nil
      }
    }
    let patience = BusTimeouts(answer: .seconds(25), conversation: .seconds(2))
    #expect(bus.code(patience) { _ = try $0.ids() } == .storeUnavailable)
    #expect(bus.count(of: "Get") < 100)
  }

  @Test func `an answer is waited for no longer than the conversation may last`() throws {
    let isOver = DispatchSemaphore(value: 0)
    let bus = HostileBus.keeping(Self.kept) { call in
      // Who waits longer is answered.
      if call.member == "GetSecret" { _ = isOver.wait(timeout: .now() + 20) }
      return nil
    }
    let patience = BusTimeouts(answer: .seconds(600), conversation: .seconds(2))
    #expect(bus.code(patience) { _ = try $0.read(.messaging) } == .storeUnavailable)
    isOver.signal()
  }

  @Test func `a store waits 25 seconds for an answer, and a minute for all of them`() {
    let patience = SecretServiceStore(home: HostileBus.Healthy.home).busPatience
    #expect(patience.answer == .seconds(25))
    #expect(patience.conversation == .seconds(60))
  }

  @Test func `an answer that is larger than any need be is not taken apart`() throws {
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

  @Test func `what a service writes into an error is cut short, and is one line`() throws {
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
