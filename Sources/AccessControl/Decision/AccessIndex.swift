public import Foundation

/// All that is allowed now, in memory: applications, users, grants, and revoked tokens.
///
/// It is a value without a clock. The server loads it from its tables, applies each change, and asks
/// it for each operation. Every change returns what it concerns; nil if it changed nothing.
public struct AccessIndex: Sendable {
  /// The grants of one holder.
  struct GrantTable: Sendable {
    /// A grant without its key, small because there are many.
    struct Entry: Sendable {
      let start: Date
      let minutes: Int32
      let rights: Rights

      init(_ grant: Grant) {
        start = grant.start
        minutes = Int32(grant.minutes)
        rights = grant.rights
      }

      var end: Date? { Grant.end(start: start, minutes: Int(minutes)) }
    }

    /// The entry for the whole application, which every decision reads.
    var application: Entry?
    var entries: [Scope: Entry] = [:]
    /// How many entries are patterns, so that most decisions look for none.
    var patternCount = 0
  }

  /// A user of the realm.
  struct User: Sendable, Equatable {
    let roles: Set<Name>
    let password: PasswordVersion?
  }

  /// What an application has.
  struct Entry: Sendable {
    /// Whether the application is open; nil while grants were put, but not their application.
    var isOpen: Bool?
    /// What everyone has, apart from the holders, because every decision reads it.
    var everyone = GrantTable()
    var holders: [GrantHolder: GrantTable] = [:]
    var users: [Name: User] = [:]
    var revocations: [TokenDigest: Date] = [:]
  }

  /// What ends by itself.
  private enum Ending: Sendable {
    case grant(Grant.Key)
    case revocation(TokenDigest, ApplicationID)
  }

  private(set) var entries: [ApplicationID: Entry] = [:]
  /// Apart from the entries, because no decision reads it.
  private var applications: [ApplicationID: Application] = [:]
  private var endings = Deadlines<Ending>()
  private var endingCount = 0

  /// The number of grants.
  public private(set) var grantCount = 0

  /// How many ends are kept, those of replaced grants included.
  package var endingCapacity: Int { endings.count }

  /// Makes an empty index, which allows nothing.
  public init() {}

  /// The next moment at which ``expire(at:)`` has something to do; nil if nothing ends.
  public var nextEnd: Date? { endings.next }

  /// An application; nil if there is none with this id.
  public func application(_ id: ApplicationID) -> Application? { applications[id] }

  // MARK: - Applications

  /// Adds an application, or replaces the one with its id.
  @discardableResult
  public mutating func put(_ application: Application) -> AccessChange {
    applications[application.id] = application
    entries[application.id, default: Entry()].isOpen = application.isOpen
    return .application(application.id)
  }

  /// Removes an application, its grants and its revocations.
  @discardableResult
  public mutating func removeApplication(_ id: ApplicationID) -> AccessChange? {
    applications[id] = nil
    guard let entry = entries.removeValue(forKey: id) else { return nil }
    for (_, table) in entry.tables {
      grantCount -= table.all.count
      endingCount -= table.all.count { $0.entry.end != nil }
    }
    endingCount -= entry.revocations.count
    return .application(id)
  }

  // MARK: - Grants

  /// Adds a grant, or replaces the one with its key; a grant without rights removes that one.
  @discardableResult
  public mutating func put(_ grant: Grant) -> AccessChange? {
    guard !grant.rights.isEmpty else { return removeGrant(grant.key) }
    let entry = GrantTable.Entry(grant)
    let old = exchange(entry, at: grant.key)
    if let end = entry.end { insert(.grant(grant.key), at: end) }
    guard old?.rights != entry.rights || old?.end != entry.end else { return nil }
    return change(of: grant.key)
  }

  /// Removes a grant.
  @discardableResult
  public mutating func removeGrant(_ key: Grant.Key) -> AccessChange? {
    exchange(nil, at: key) == nil ? nil : change(of: key)
  }

  /// The grants of an application, of one holder or of all, in no order.
  public func grants(of application: ApplicationID, holder: GrantHolder? = nil) -> [Grant] {
    let tables = entries[application]?.tables ?? []
    return tables.filter { holder == nil || holder == $0.holder }.flatMap { found, table in
      table.all.compactMap { scope, entry in
        try? Grant(
          entry.rights, on: Grant.Key(scope, of: application, holder: found),
          minutes: Int(entry.minutes), start: entry.start)
      }
    }
  }

  private func change(of key: Grant.Key) -> AccessChange {
    key.holder == .everyone
      ? .everyone(of: key.application) : .holder(key.holder, of: key.application)
  }

  /// Stores an entry, or removes it, and returns the one that was there.
  private mutating func exchange(
    _ entry: GrantTable.Entry?, at key: Grant.Key
  ) -> GrantTable.Entry? {
    let old = entries[key.application, default: Entry()].exchange(entry, at: key)
    grantCount += (entry == nil ? 0 : 1) - (old == nil ? 0 : 1)
    endingCount += (entry?.end == nil ? 0 : 1) - (old?.end == nil ? 0 : 1)
    return old
  }

  // MARK: - Users

  /// Adds a user, or gives one another password or other roles.
  @discardableResult
  public mutating func put(
    user: Name, password: PasswordVersion? = nil, roles: Set<Name>, of application: ApplicationID
  ) -> AccessChange? {
    let new = User(roles: roles, password: password)
    let old = entries[application, default: Entry()].users.updateValue(new, forKey: user)
    return old == new ? nil : .holder(.user(user), of: application)
  }

  /// Removes a user, who is refused from here on.
  ///
  /// The grants for that user stay.
  @discardableResult
  public mutating func removeUser(
    _ user: Name, of application: ApplicationID
  ) -> AccessChange? {
    entries[application]?.users.removeValue(forKey: user)
      .map { _ in .holder(.user(user), of: application) }
  }

  // MARK: - Revoked tokens

  /// Revokes a token.
  ///
  /// - Parameters:
  ///   - end: when the token ends by itself, after which it needs no revocation.
  @discardableResult
  public mutating func revoke(
    _ token: TokenDigest, of application: ApplicationID, until end: Date
  ) -> AccessChange? {
    let old = entries[application, default: Entry()].revocations.updateValue(end, forKey: token)
    guard old == nil else { return nil }
    endingCount += 1
    insert(.revocation(token, application), at: end)
    return .token(token, of: application)
  }

  // MARK: - What ends by itself

  /// Removes what has ended, and returns what that concerns.
  ///
  /// Decisions do not depend on it: they compare each end with their own time. It frees memory, and
  /// tells a server which callers to ask about again.
  public mutating func expire(at now: Date) -> Set<AccessChange> {
    var changes: Set<AccessChange> = []
    while let ending = endings.removeNext(at: now) {
      switch ending {
      case .grant(let key):
        // A later grant can have replaced the one that ends here.
        guard let end = entry(at: key)?.end, end <= now else { continue }
        if let change = removeGrant(key) { changes.insert(change) }
      case .revocation(let token, let application):
        guard let end = entries[application]?.revocations[token], end <= now else { continue }
        entries[application]?.revocations[token] = nil
        endingCount -= 1
      }
    }
    return changes
  }

  private func entry(at key: Grant.Key) -> GrantTable.Entry? {
    let found = entries[key.application]
    let table = key.holder == .everyone ? found?.everyone : found?.holders[key.holder]
    return key.scope == .application ? table?.application : table?.entries[key.scope]
  }

  private mutating func insert(_ ending: Ending, at end: Date) {
    endings.insert(ending, at: end)
    // Grants that are renewed leave their old ends behind.
    guard endings.count > 2 * endingCount + 1024 else { return }
    endings.removeAll()
    for (application, entry) in entries {
      for (holder, table) in entry.tables {
        for (scope, entry) in table.all {
          guard let end = entry.end else { continue }
          endings.insert(.grant(Grant.Key(scope, of: application, holder: holder)), at: end)
        }
      }
      for (token, end) in entry.revocations {
        endings.insert(.revocation(token, application), at: end)
      }
    }
  }
}

extension AccessIndex.Entry {
  /// All tables with their holders.
  var tables: [(holder: GrantHolder, table: AccessIndex.GrantTable)] {
    [(.everyone, everyone)] + holders.map { ($0.key, $0.value) }
  }

  mutating func exchange(
    _ entry: AccessIndex.GrantTable.Entry?, at key: Grant.Key
  ) -> AccessIndex.GrantTable.Entry? {
    guard key.holder != .everyone else { return everyone.exchange(entry, at: key.scope) }
    let old = holders[key.holder, default: AccessIndex.GrantTable()].exchange(entry, at: key.scope)
    if holders[key.holder]?.isEmpty == true { holders[key.holder] = nil }
    return old
  }
}

extension AccessIndex.GrantTable {
  var isEmpty: Bool { application == nil && entries.isEmpty }

  /// All entries with their scopes.
  var all: [(scope: Scope, entry: Entry)] {
    entries.map { ($0.key, $0.value) } + (application.map { [(.application, $0)] } ?? [])
  }

  mutating func exchange(_ entry: Entry?, at scope: Scope) -> Entry? {
    if scope == .application {
      defer { application = entry }
      return application
    }
    let old = entries[scope]
    entries[scope] = entry
    if case .channel(let name) = scope, name.isPattern {
      patternCount += (entry == nil ? 0 : 1) - (old == nil ? 0 : 1)
    }
    return old
  }
}
