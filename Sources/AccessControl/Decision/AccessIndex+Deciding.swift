public import Foundation

extension AccessIndex {
  /// Whether a principal can do an operation on a resource now, why, and until when.
  ///
  /// Nothing is allowed for lack of a rule. The rules and their order are those of
  /// docs/reference/access.md; version 2 as PubNub's access manager evaluates it.
  public func decide(
    _ principal: Principal, _ operation: AccessOperation, _ resource: Resource, at now: Date
  ) -> Decision {
    guard let isOpen = openness[resource.application] else { return .refused(.unknownApplication) }
    guard operation.applies(to: resource.scope) else { return .refused(.notApplicable) }
    if operation.sends, case .channel(let name) = resource.scope {
      if name.isReserved { return .refused(.reservedName) }
      if name.isPattern { return .refused(.pattern) }
    }
    switch principal {
    case .signed(let application):
      return application == resource.application
        ? .allowed(.signature) : .refused(.otherApplication)
    case .token(let token, let userID):
      return decide(token, userID: userID, operation, resource, at: now)
    case .subscriber(let channel, let application):
      guard application == resource.application else { return .refused(.otherApplication) }
      if resource.scope == .channel(channel), operation.isForSubscriber {
        return .allowed(.endpoint)
      }
    case .anonymous, .authKey, .user: break
    }
    return decideByGrants(principal.holder, operation, resource, isOpen: isOpen, at: now)
  }

  /// A token decides alone.
  private func decide(
    _ token: Token, userID: String?, _ operation: AccessOperation, _ resource: Resource,
    at now: Date
  ) -> Decision {
    guard token.application == resource.application else { return .refused(.otherApplication) }
    if revocations[token.application]?[token.digest] != nil { return .refused(.tokenRevoked) }
    guard now < token.end else { return .refused(.tokenExpired) }
    if let authorized = token.contents.authorizedUserID,
      userID?.utf8.elementsEqual(authorized.utf8) != true
    {
      return .refused(.otherUser)
    }
    guard let right = operation.right else { return .refused(.needsSignature) }
    guard let rule = token.rule(giving: right, on: resource.scope) else {
      return .refused(.noGrant)
    }
    return .allowed(rule, until: token.end)
  }

  private func decideByGrants(
    _ holder: GrantHolder?, _ operation: AccessOperation, _ resource: Resource, isOpen: Bool,
    at now: Date
  ) -> Decision {
    guard let right = operation.right else { return .refused(.needsSignature) }
    let needsAuthority = resource.scope.channel?.needsAuthority == true
    var search = GrantSearch(right: right, scope: resource.scope, now: now)
    if !needsAuthority {
      if isOpen, operation.isOpen { return .allowed(.openApplication) }
      search.look(in: tables[Holder(application: resource.application, holder: .everyone)])
    }
    if let holder, !search.isUnlimited {
      search.holder = holder
      search.look(in: tables[Holder(application: resource.application, holder: holder)])
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
  let scope: Scope
  let now: Date
  /// Whose table is read.
  var holder = GrantHolder.everyone
  private(set) var found: Decision?

  init(right: Rights, scope: Scope, now: Date) {
    self.right = right
    self.scope = scope
    self.now = now
  }

  /// Whether nothing can last longer than what was found.
  var isUnlimited: Bool {
    guard let found else { return false }
    return found.end == nil
  }

  mutating func look(in table: AccessIndex.GrantTable?) {
    guard let table else { return }
    consider(table.application, on: .application)
    guard !isUnlimited else { return }
    switch scope {
    case .application: break
    case .user: consider(table.entries[scope], on: scope)
    case .channel(let name): look(for: name, in: table)
    case .consumer(_, let channel):
      look(for: channel, in: table)
      consider(table.entries[scope], on: scope)
    case .group(let name):
      let covering = Scope.group(name.covering)
      consider(table.entries[covering], on: covering)
      if covering != scope { consider(table.entries[scope], on: scope) }
    }
  }

  private mutating func look(for name: ChannelName, in table: AccessIndex.GrantTable) {
    if table.patternCount > 0, let pattern = name.coveringPattern, pattern != name {
      consider(table.entries[.channel(pattern)], on: .channel(pattern))
    }
    guard !isUnlimited else { return }
    consider(table.entries[.channel(name)], on: .channel(name))
  }

  private mutating func consider(_ entry: AccessIndex.GrantTable.Entry?, on scope: Scope) {
    guard let entry, entry.rights.isSuperset(of: right) else { return }
    if let end = entry.end {
      guard now < end else { return }
      if let found {
        guard let other = found.end, other < end else { return }
      }
    } else if isUnlimited {
      return
    }
    found = .allowed(.grant(on: scope, holder: holder), until: entry.end)
  }
}
