import AccessControl
import Foundation

/// The rules of docs/reference/access.md as a list of grants and one loop: slow, and easy to check
/// by reading.
struct DecisionModel {
  var isOpen = false
  var exists = true
  var grants: [Grant.Key: Grant] = [:]
  var revoked: Set<TokenDigest> = []
  var users: [Name: Set<Name>] = [:]

  /// Who asks, with what a token says in plain form.
  enum Caller {
    case anonymous, signed, signedElsewhere
    case authKey(AuthKeyHash)
    case user(Name)
    case subscriber(String)
    case token(
      TokenDigest, names: [String: Rights], patterns: [String: Rights], end: Date,
      authorized: String?, userID: String?)
  }

  struct Answer: Equatable {
    let isAllowed: Bool
    let end: Date?
    static let no = Answer(isAllowed: false, end: nil)
    static func yes(_ end: Date? = nil) -> Answer { Answer(isAllowed: true, end: end) }
  }

  func decide(
    _ caller: Caller, _ operation: AccessOperation, _ scope: Scope, at now: Date
  ) -> Answer {
    guard exists,
      OperationTests.rows.contains(where: {
        $0.operation == operation && kind($0.scope) == kind(scope)
      }) || [.hereNowEverywhere, .manageAccess].contains(operation) && scope == .application
    else { return .no }
    let right =
      OperationTests.rows.first { $0.operation == operation }?.right
      ?? (operation == .hereNowEverywhere ? .read : [])
    let name = text(scope)
    if right == .write {
      if name.hasSuffix("-pnpres") || name.hasSuffix(".*") { return .no }
      if name.hasPrefix("pusher:") || name.hasPrefix("pusher_internal:") { return .no }
      if name.hasPrefix("datavault:") { return .no }
    }
    switch caller {
    case .signed: return .yes()
    case .signedElsewhere: return .no
    case .token(let digest, let names, let patterns, let end, let authorized, let userID):
      if revoked.contains(digest) || now >= end || right.isEmpty { return .no }
      if let authorized, authorized != userID { return .no }
      let kind = kind(scope) == "group" ? "g " : "c "
      guard scope != .application else { return .no }
      let held = patterns.filter { name.contains($0.key) }.map(\.value) + [names[kind + name] ?? []]
      return held.contains { $0.contains(right) } ? .yes(end) : .no
    case .subscriber(let channel):
      let own: [AccessOperation] = [.subscribe, .unsubscribe, .heartbeat, .hereNow, .clientEvent]
      if kind(scope) == "channel", name == channel, own.contains(operation) { return .yes() }
    case .user(let name): if users[name] == nil { return .no }
    case .anonymous, .authKey: break
    }
    if right.isEmpty { return .no }
    let isPrivate =
      kind(scope) != "group"
      && ["private-", "presence-", "#server-to-user-"].contains { name.hasPrefix($0) }
    let closed: [AccessOperation] = [.deleteMessages, .lease, .addConsumer, .deadLetters, .purge]
    if isOpen, !isPrivate, !closed.contains(operation) { return .yes() }
    var ends: [Date] = []
    for grant in grants.values {
      switch (grant.key.holder, caller) {
      case (.everyone, _): if isPrivate { continue }
      case (.authKey(let granted), .authKey(let asking)): if granted != asking { continue }
      case (.user(let granted), .user(let asking)): if granted != asking { continue }
      case (.role(let role), .user(let asking)):
        if users[asking]?.contains(role) != true { continue }
      default: continue
      }
      guard grant.rights.contains(right), covers(grant.key.scope, scope) else { continue }
      if grant.minutes == 0 { ends.append(.distantFuture) }
      let end = grant.start.addingTimeInterval(Double(grant.minutes) * 60)
      if grant.minutes > 0, now < end { ends.append(end) }
    }
    guard let last = ends.max() else { return .no }
    return .yes(last == .distantFuture ? nil : last)
  }

  private func covers(_ granted: Scope, _ asked: Scope) -> Bool {
    if granted == asked || granted == .application { return true }
    switch (granted, asked) {
    case (.channel, .consumer(_, let channel)): return covers(granted, .channel(channel))
    case (.group, .group):
      return text(granted) == ":" && !text(asked).hasSuffix("-pnpres")
        || text(granted) == ":-pnpres" && text(asked).hasSuffix("-pnpres")
    case (.channel, .channel): return covers(pattern: text(granted), text(asked))
    default: return false
    }
  }

  /// `a.*` covers what begins with `a.`, and `a.*-pnpres` the presence channels of that.
  private func covers(pattern: String, _ name: String) -> Bool {
    let isPresence = pattern.hasSuffix("-pnpres")
    guard isPresence == name.hasSuffix("-pnpres") else { return false }
    let base = isPresence ? String(pattern.dropLast(7)) : pattern
    guard base.hasSuffix(".*"), base.filter({ $0 == "." }).count == 1 else { return false }
    return name.hasPrefix(base.dropLast())
  }

  private func kind(_ scope: Scope) -> String {
    switch scope {
    case .application: "application"
    case .channel: "channel"
    case .group: "group"
    case .consumer: "consumer"
    case .user: "user"
    }
  }

  private func text(_ scope: Scope) -> String {
    switch scope {
    case .application: ""
    case .channel(let name): name.text
    case .group(let name): name.text
    case .consumer(_, let name): name.text
    case .user(let name): name.text
    }
  }
}
