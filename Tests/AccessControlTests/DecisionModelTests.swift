import AccessControl
import Foundation
import TestSupport
import Testing

/// Random grants, changes and questions: the index must answer as the model does.
@Suite struct DecisionModelTests {
  private static let channels = [
    "c", "a.b", "a.b.c", "a.*", "a.b.*", "a.b-pnpres", "a.*-pnpres", "c-pnpres", "private-a",
    "private-a.b", "presence-a.*", "#server-to-user-a", "pusher:x", "datavault:y", ".x", "b.c",
  ]
  private static let groups = ["g", "h", ":", "g-pnpres", ":-pnpres"]
  private static let users = ["ana", "bob"]
  private static let roles = ["ana", "staff", "guest"]
  private static let keys = ["k", "l", "m"]
  private static let patterns = ["a", "pnpres", "private", "g", "b"]

  private struct Case {
    var random: SeededRandom
    var index = AccessIndex()
    var model = DecisionModel()
    var granted: [Grant.Key] = []
    var tokens: [(token: Token, caller: (String?) -> DecisionModel.Caller)] = []
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func `decide() answers as the model does`(seed: UInt64) throws {
    var run = Case(random: SeededRandom(seed: 0xACCE55 + seed))
    run.index.put(application(isOpen: false))
    run.index.put(application(bank, name: "bank"))
    for _ in 0..<3 { try addToken(to: &run) }
    var allowedCount = 0
    for step in 0..<300 {
      let now = minute(Double(step) / 10)
      try change(&run, at: now)
      for _ in 0..<5 { if ask(&run, at: now) { allowedCount += 1 } }
    }
    // A run in which nearly everything has one answer would show nothing.
    #expect(allowedCount > 100 && allowedCount < 1400, "\(allowedCount)")
  }

  private func change(_ run: inout Case, at now: Date) throws {
    switch run.random.next(20) {
    case 0:
      run.model.isOpen = run.random.oneIn(4)
      run.index.put(application(isOpen: run.model.isOpen))
    case 1: _ = run.index.expire(at: now)
    case 2:
      let token = run.tokens[run.random.next(run.tokens.count)].token
      run.index.revoke(token.digest, of: shop, until: token.end)
      run.model.revoked.insert(token.digest)
      try addToken(to: &run)
    case 3 where run.random.oneIn(10):
      run.index.removeApplication(shop)
      run.index.put(application())
      run.model = DecisionModel()
    case 6, 7:
      let user = made(try Name(Self.users[run.random.next(2)]))
      if run.random.oneIn(4) {
        run.index.removeUser(user, of: shop)
        run.model.users[user] = nil
      } else {
        var random = run.random
        let roles = try Set(Self.roles.filter { _ in random.oneIn(2) }.map { made(try Name($0)) })
        run.random = random
        run.index.put(user: user, roles: roles, of: shop)
        run.model.users[user] = roles
      }
    case 4...5 where !run.granted.isEmpty:
      let key = run.granted[run.random.next(run.granted.count)]
      run.index.removeGrant(key)
      run.model.grants[key] = nil
    default:
      let key = Grant.Key(scope(&run.random, isGrant: true), of: shop, holder: holder(&run.random))
      let grant = try Grant(
        rights(&run.random), on: key, minutes: run.random.next(6), start: now)
      run.index.put(grant)
      run.granted.append(key)
      run.model.grants[key] = grant.rights.isEmpty ? nil : grant
    }
  }

  private func ask(_ run: inout Case, at now: Date) -> Bool {
    let operations = AccessOperation.allCases
    let operation = operations[run.random.next(operations.count)]
    let scope = scope(&run.random, isGrant: false)
    let (principal, caller) = caller(&run)
    let decision = run.index.decide(principal, operation, Resource(scope, of: shop), at: now)
    let answer = run.model.decide(caller, operation, scope, at: now)
    #expect(
      DecisionModel.Answer(isAllowed: decision.isAllowed, end: decision.end) == answer,
      "\(operation) on \(scope) by \(caller): \(decision.reason)")
    return decision.isAllowed
  }

  private func caller(_ run: inout Case) -> (Principal, DecisionModel.Caller) {
    switch run.random.next(14) {
    case 0: return (.signed(shop), .signed)
    case 1: return (.signed(bank), .signedElsewhere)
    case 2, 3, 4:
      let hash = hash(Self.keys[run.random.next(3)])
      return (.authKey(hash), .authKey(hash))
    case 5, 12, 13:
      let name = made(try Name(Self.users[run.random.next(2)]))
      return (.user(name), .user(name))
    case 6:
      let name = Self.channels[run.random.next(Self.channels.count)]
      return (.subscriber(made(try ChannelName(name)), of: shop), .subscriber(name))
    case 7, 8, 9:
      let chosen = run.tokens[run.random.next(run.tokens.count)]
      let userID = run.random.oneIn(3) ? nil : Self.users[run.random.next(2)]
      return (.token(chosen.token, userID: userID), chosen.caller(userID))
    default: return (.anonymous, .anonymous)
    }
  }

  private func addToken(to run: inout Case) throws {
    var names: [String: Rights] = [:]
    var resources = TokenRights()
    for name in Self.channels where run.random.oneIn(4) {
      names["c " + name] = rights(&run.random)
      resources.channels.append(TokenRights.Entry(name, names["c " + name]!))
    }
    for name in Self.groups where run.random.oneIn(4) {
      names["g " + name] = rights(&run.random)
      resources.groups.append(TokenRights.Entry(name, names["g " + name]!))
    }
    var found: [String: Rights] = [:]
    for text in Self.patterns where run.random.oneIn(3) { found[text] = rights(&run.random) }
    let entries = found.map { TokenRights.Entry($0.key, $0.value) }
    let authorized = run.random.oneIn(3) ? Self.users[run.random.next(2)] : nil
    // Names that no other token has, so that each has a digest of its own.
    resources.spaces = [TokenRights.Entry("\(run.tokens.count)", .read)]
    let token = try token(
      resources, patterns: TokenRights(channels: entries, groups: entries),
      minutes: 1 + run.random.next(30), authorizedUserID: authorized)
    let (patterns, allNames) = (found, names)
    run.tokens.append(
      (
        token,
        {
          .token(
            token.digest, names: allNames, patterns: patterns, end: token.end,
            authorized: authorized, userID: $0)
        }
      ))
  }

  private func scope(_ random: inout SeededRandom, isGrant: Bool) -> Scope {
    switch random.next(8) {
    case 0: isGrant && !random.oneIn(3) ? channel("c") : .application
    case 1, 2: group(Self.groups[random.next(Self.groups.count)])
    case 3: consumer("w", of: Self.channels[random.next(Self.channels.count)])
    default: channel(Self.channels[random.next(Self.channels.count)])
    }
  }

  private func holder(_ random: inout SeededRandom) -> GrantHolder {
    switch random.next(5) {
    case 0: .everyone
    case 4: .role(made(try Name(Self.roles[random.next(3)])))
    case 1: .user(made(try Name(Self.users[random.next(2)])))
    default: .authKey(hash(Self.keys[random.next(3)]))
    }
  }

  private func rights(_ random: inout SeededRandom) -> Rights {
    let bits = random.next() & (random.oneIn(2) ? random.next() : .max)
    return Rights(rawValue: UInt16(truncatingIfNeeded: bits))
  }
}
