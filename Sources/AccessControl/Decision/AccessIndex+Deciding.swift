public import Foundation

extension AccessIndex {
  /// Whether a principal can do an operation on a resource now, why, and until when.
  ///
  /// Nothing is allowed for lack of a rule. The rules and their order are those of
  /// docs/reference/access.md; version 2 as PubNub's access manager evaluates it.
  public func decide(
    _ principal: Principal, _ operation: AccessOperation, _ resource: Resource, at now: Date
  ) -> Decision {
    guard let entry = entries[resource.application], let isOpen = entry.isOpen else {
      return .refused(.unknownApplication)
    }
    guard operation.applies(to: resource.scope) else { return .refused(.notApplicable) }
    if operation.sends, case .channel(let name) = resource.scope {
      if name.isReserved { return .refused(.reservedName) }
      if name.isPattern { return .refused(.pattern) }
    }
    if let reason = entry.refusal(of: principal, in: resource.application, at: now) {
      return .refused(reason)
    }
    switch principal {
    case .signed: return .allowed(.signature)
    case .token(let token, _): return entry.decide(token, operation, resource)
    case .subscriber(let channel, _):
      if resource.scope == .channel(channel), operation.isForSubscriber {
        return .allowed(.endpoint)
      }
    case .anonymous, .authKey, .user: break
    }
    return entry.decide(
      principal.holder, operation, resource.scope, isOpen: isOpen, at: now)
  }

  /// Why a credential allows nothing in an application, whatever is asked for; nil if it counts.
  public func refusal(
    of principal: Principal, in application: ApplicationID, at now: Date
  ) -> Decision.Reason? {
    guard let entry = entries[application], entry.isOpen != nil else { return .unknownApplication }
    return entry.refusal(of: principal, in: application, at: now)
  }

  /// Whether a principal can do anything at all in an application now.
  public func hasRight(
    _ principal: Principal, in application: ApplicationID, at now: Date
  ) -> Bool {
    guard let entry = entries[application], let isOpen = entry.isOpen,
      entry.refusal(of: principal, in: application, at: now) == nil
    else { return false }
    switch principal {
    case .signed, .token, .subscriber: return true
    case .anonymous, .authKey, .user: break
    }
    if isOpen || entry.everyone.hasGrant(at: now) { return true }
    guard let holder = principal.holder else { return false }
    var holders = [holder]
    if case .user(let name) = holder { holders += entry.users[name]?.roles.map { .role($0) } ?? [] }
    return holders.contains { entry.holders[$0]?.hasGrant(at: now) == true }
  }
}

extension AccessIndex.GrantTable {
  fileprivate func hasGrant(at now: Date) -> Bool {
    // What has ended is removed soon, so that this looks at few entries.
    let isValid = { (entry: Entry) in entry.end.map { now < $0 } ?? true }
    return application.map(isValid) ?? false || entries.values.contains(where: isValid)
  }
}

extension AccessIndex.Entry {
  fileprivate func refusal(
    of principal: Principal, in application: ApplicationID, at now: Date
  ) -> Decision.Reason? {
    switch principal {
    case .anonymous, .authKey: return nil
    case .signed(let other), .subscriber(_, let other):
      return other == application ? nil : .otherApplication
    case .user(let name, let password):
      guard let user = users[name] else { return .unknownUser }
      guard let password, password != user.password else { return nil }
      return .passwordChanged
    case .token(let token, let userID):
      if token.application != application { return .otherApplication }
      if revocations[token.digest] != nil { return .tokenRevoked }
      if now >= token.end { return .tokenExpired }
      guard let authorized = token.contents.authorizedUserID,
        userID?.utf8.elementsEqual(authorized.utf8) != true
      else { return nil }
      return .otherUser
    }
  }

  /// A token decides alone.
  fileprivate func decide(
    _ token: Token, _ operation: AccessOperation, _ resource: Resource
  ) -> Decision {
    guard let right = operation.right else { return .refused(.needsSignature) }
    guard let rule = token.rule(giving: right, on: resource.scope) else {
      return .refused(.noGrant)
    }
    return .allowed(rule, until: token.end)
  }

  fileprivate func decide(
    _ holder: GrantHolder?, _ operation: AccessOperation, _ scope: Scope, isOpen: Bool,
    at now: Date
  ) -> Decision {
    guard let right = operation.right else { return .refused(.needsSignature) }
    let needsAuthority = scope.channel?.needsAuthority == true
    var search = GrantSearch(right: right, now: now)
    if !needsAuthority {
      if isOpen, operation.isOpen { return .allowed(.openApplication) }
      search.look(for: scope, in: everyone)
    }
    if let holder, !search.isUnlimited, let table = holders[holder] {
      search.holder = holder
      search.look(for: scope, in: table)
    }
    if case .user(let name) = holder, let roles = users[name]?.roles {
      // In order of their names, so that of two equal grants the same one is named each time.
      for role in roles.sorted(by: { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) }) {
        guard !search.isUnlimited, let table = holders[.role(role)] else { continue }
        search.holder = .role(role)
        search.look(for: scope, in: table)
      }
    }
    return search.found ?? .refused(needsAuthority ? .needsAuthority : .noGrant)
  }
}

extension AccessOperation {
  /// Whether a Pusher client can do this on a channel for which it was authorized.
  fileprivate var isForSubscriber: Bool {
    switch self {
    case .subscribe, .unsubscribe, .heartbeat, .hereNow, .clientEvent: true
    default: false
    }
  }
}

/// Looks for the grant that allows an operation longest, from the broadest level to the narrowest.
private struct GrantSearch {
  let right: Rights
  let now: Date
  /// Whose grants are read.
  var holder = GrantHolder.everyone
  private(set) var found: Decision?

  init(right: Rights, now: Date) {
    self.right = right
    self.now = now
  }

  /// Whether nothing can last longer than what was found.
  var isUnlimited: Bool {
    guard let found else { return false }
    return found.end == nil
  }

  mutating func look(for scope: Scope, in table: AccessIndex.GrantTable) {
    consider(table.application, .application)
    guard !isUnlimited, !table.entries.isEmpty else { return }
    switch scope {
    case .application: return
    case .channel(let name): lookForPattern(of: name, in: table)
    case .consumer(_, let channel):
      lookForPattern(of: channel, in: table)
      consider(table.entries[.channel(channel)], .name)
    case .group(let name): consider(table.entries[.group(name.covering)], .allGroups)
    case .user: break
    }
    guard !isUnlimited else { return }
    consider(table.entries[scope], .name)
  }

  private mutating func lookForPattern(
    of name: ChannelName, in table: AccessIndex.GrantTable
  ) {
    guard table.patternCount > 0, let pattern = name.coveringPattern else { return }
    consider(table.entries[.channel(pattern)], .pattern)
  }

  private mutating func consider(
    _ entry: AccessIndex.GrantTable.Entry?, _ level: Decision.Level
  ) {
    guard let entry, entry.rights.isSuperset(of: right), !isUnlimited else { return }
    if let end = entry.end {
      guard now < end else { return }
      if let other = found?.end, end <= other { return }
    }
    let reason: Decision.Reason =
      switch holder {
      case .everyone: .grantForEveryone(level)
      case .authKey, .user: .grant(level)
      case .role(let name): .grantForRole(name, level)
      }
    found = .allowed(reason, until: entry.end)
  }
}
