import AccessControl
import Testing

/// Every row of the table of operations, with the right that it needs.
@Suite struct OperationTests {
  struct Row: CustomTestStringConvertible, Sendable {
    let operation: AccessOperation
    let scope: Scope
    let right: Rights
    var testDescription: String { "\(operation.rawValue) on \(scope): \(right)" }

    init(_ operation: AccessOperation, _ scope: Scope, _ right: Rights) {
      self.operation = operation
      self.scope = scope
      self.right = right
    }
  }

  /// PubNub's table, row by row, then what the table does not have.
  static let rows = [
    Row(.subscribe, channel("c"), .read),
    Row(.subscribe, group("g"), .read),
    Row(.subscribe, channel("c-pnpres"), .read),
    Row(.subscribe, group("g-pnpres"), .read),
    Row(.unsubscribe, channel("c"), .read),
    Row(.unsubscribe, group("g"), .read),
    Row(.unsubscribe, channel("c-pnpres"), .read),
    Row(.unsubscribe, group("g-pnpres"), .read),
    Row(.publish, channel("c"), .write),
    Row(.hereNow, channel("c"), .read),
    Row(.hereNow, group("g"), .read),
    Row(.whereNow, channel("c"), .read),
    Row(.getState, channel("c"), .read),
    Row(.setState, channel("c"), .read),
    Row(.getState, group("g"), .read),
    Row(.setState, group("g"), .read),
    Row(.history, channel("c"), .read),
    Row(.addToGroup, group("g"), .manage),
    Row(.listGroupChannels, group("g"), .read),
    Row(.removeFromGroup, group("g"), .manage),
    Row(.removeGroup, group("g"), .manage),
    Row(.subscribe, channel("a.*"), .read),
    Row(.heartbeat, channel("c"), .read),
    Row(.heartbeat, group("g"), .read),
    Row(.signal, channel("c"), .write),
    Row(.fire, channel("c"), .write),
    Row(.clientEvent, channel("c"), .write),
    Row(.fetch, channel("c"), .read),
    Row(.messageCounts, channel("c"), .read),
    Row(.deleteMessages, channel("c"), .delete),
    Row(.listGroups, group(":"), .read),
    Row(.lease, channel("c"), .lease),
    Row(.lease, consumer("w", of: "c"), .lease),
    Row(.addConsumer, channel("c"), .manage),
    Row(.addConsumer, consumer("w", of: "c"), .manage),
    Row(.deadLetters, channel("c"), .manage),
    Row(.deadLetters, consumer("w", of: "c"), .manage),
    Row(.purge, channel("c"), .manage),
  ]

  @Test(arguments: rows)
  func `an operation needs its right on its resource, and no other right helps`(row: Row) {
    let holder = GrantHolder.authKey(hash("k"))
    let principal = Principal.authKey(hash("k"))
    #expect(
      access(grant(row.right, on: row.scope, for: holder)).allows(
        principal, row.operation, row.scope))
    let others = grant(Rights.all.subtracting(row.right), on: row.scope, for: holder)
    let refusal = access(others).decide(
      principal, row.operation, Resource(row.scope, of: shop), at: start)
    #expect(!refusal.isAllowed)
    #expect(refusal.reason == .noGrant)
    #expect(refusal.end == nil)
  }

  @Test func `each operation has a row`() {
    let tested = Set(Self.rows.map(\.operation)).union([.hereNowEverywhere, .manageAccess])
    #expect(tested == Set(AccessOperation.allCases))
  }

  @Test func `here-now for all channels needs read on the application`() {
    #expect(access(grant(.read, on: .application)).allows(.hereNowEverywhere, .application))
    #expect(!access(grant(.read, on: channel("c"))).allows(.hereNowEverywhere, .application))
  }

  @Test func `only a signature manages access`() throws {
    let all = access(grant(.all, on: .application), isOpen: true)
    #expect(all.reason(.manageAccess, .application) == .needsSignature)
    #expect(all.reason(.authKey(hash("k")), .manageAccess, .application) == .needsSignature)
    let full = TokenRights(channels: [TokenRights.Entry("c", .all)])
    #expect(
      all.reason(.token(try token(full), userID: nil), .manageAccess, .application)
        == .needsSignature)
    #expect(all.allows(.signed(shop), .manageAccess, .application))
  }

  @Test(arguments: [AccessOperation.publish, .signal, .fire, .clientEvent])
  func `no right reaches a reserved name or a pattern`(operation: AccessOperation) throws {
    let all = access(grant(.all, on: .application), isOpen: true)
    for name in ["c-pnpres", "pusher:x", "pusher_internal:x", "datavault:x"] {
      #expect(all.reason(.signed(shop), operation, channel(name)) == .reservedName)
      #expect(all.reason(operation, channel(name)) == .reservedName)
    }
    #expect(all.reason(.signed(shop), operation, channel("a.*")) == .pattern)
  }

  @Test func `an operation on a resource of another kind is refused`() {
    let all = access(grant(.all, on: .application))
    #expect(all.reason(.signed(shop), .publish, group("g")) == .notApplicable)
    #expect(all.reason(.lease, group("g")) == .notApplicable)
    #expect(all.reason(.addToGroup, channel("c")) == .notApplicable)
    #expect(all.reason(.manageAccess, channel("c")) == .notApplicable)
  }

  @Test func `read never implies lease`() {
    let readers = access(grant([.read, .write, .manage, .delete], on: .application))
    #expect(!readers.allows(.lease, consumer("w", of: "c")))
    #expect(!readers.allows(.lease, channel("c")))
  }
}
