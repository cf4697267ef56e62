package import AccessControl
internal import Foundation
internal import GRDB

/// An application in memory, with its keys opened.
package struct DirectoryEntry: Sendable {
  /// The application, which verifies signatures.
  package let application: Application
  /// Makes and reads its tokens.
  package let signer: TokenSigner
  /// What the tables say about it.
  package let record: ApplicationRecord

  init(_ row: ApplicationRow, _ keys: ApplicationKeys) throws {
    record = row.record
    application = try Application(
      id: record.id, name: record.name, publishKey: record.publishKey,
      subscribeKey: record.subscribeKey,
      secretKey: SecretKey(
        keys.open(row.sealedSecretKey, of: record.id, name: record.name)), isOpen: record.isOpen)
    signer = try TokenSigner(application)
  }
}

/// What a refresh of the directory has changed.
package struct DirectoryChanges: Sendable, Hashable {
  /// A channel group of an application.
  package struct Group: Sendable, Hashable {
    /// The application.
    package let application: ApplicationID
    /// The group.
    package let name: GroupName
  }

  /// Whose decisions can differ now.
  package var access: Set<AccessChange> = []
  /// The groups whose channels differ now.
  package var groups: Set<Group> = []
  /// The applications whose webhooks differ now.
  package var webhooks: Set<ApplicationID> = []

  /// How many changes there are.
  package var count: Int { access.count + groups.count + webhooks.count }

  /// Whether nothing has changed.
  package var isEmpty: Bool { count == 0 }
}

/// All that the tables say at one generation, in memory: a value.
struct DirectoryContents: Sendable {
  /// A text that names an application.
  struct Lookup: Sendable, Hashable {
    enum Kind: Sendable { case name, subscribeKey, publishKey }

    let kind: Kind
    let text: Name

    /// - Returns: nil for a text that names nothing.
    init?(_ kind: Kind, _ text: String) {
      guard let text = try? Name(text) else { return nil }
      self.kind = kind
      self.text = text
    }

    /// All that name an application.
    static func all(of record: ApplicationRecord) -> [Lookup] {
      [
        Lookup(.name, record.name), Lookup(.subscribeKey, record.subscribeKey),
        Lookup(.publishKey, record.publishKey),
      ].compactMap(\.self)
    }
  }

  /// An object that a change names, as it is now; nil, or without rows, if it is gone.
  enum Object: Sendable {
    case application(ApplicationID, DirectoryEntry?)
    case grant(Grant.Key, Grant?)
    case revocation(TokenDigest, ApplicationID, until: Date?)
    case group(GroupName, ApplicationID, Set<ChannelName>)
    case user(Name, ApplicationID, StoredUser?)
    case webhooks(ApplicationID, [WebhookRecord])

    /// Reads the object of a change.
    init(_ change: ApplicationChange, _ keys: ApplicationKeys, _ db: Database) throws {
      switch change {
      case .application(let id):
        self = .application(
          id, try ApplicationRow.find(id, db).map { try DirectoryEntry($0, keys) })
      case .grant(let key): self = .grant(key, try ApplicationStore.grant(key, db))
      case .revocation(let digest, let id):
        let until = try db.number(
          "SELECT until FROM application_revocation WHERE application_id = ? AND digest = ?",
          id.number, Data(digest.bytes))
        self = .revocation(digest, id, until: until.map { Date(ticks: $0) })
      case .group(let name, let id):
        self = .group(name, id, try ApplicationStore.channels(of: name, of: id, db))
      case .user(let name, let id):
        self = .user(name, id, try ApplicationStore.user(name, of: id, db))
      case .webhooks(let id): self = .webhooks(id, try ApplicationStore.webhooks(of: id, db))
      }
    }
  }

  /// The generation of the newest change that is in here.
  private(set) var generation: Int64 = 0
  /// The last undoing when this was read: before it, a generation can have had other contents.
  private(set) var lastUndoing: Int64 = 0
  private(set) var index = AccessIndex()
  private(set) var entries: [ApplicationID: DirectoryEntry] = [:]
  private(set) var groups: [ApplicationID: [GroupName: Set<ChannelName>]] = [:]
  /// The passwords of users.
  private(set) var verifiers: [ApplicationID: [Name: PasswordVerifier]] = [:]
  /// The webhooks of the applications that have some.
  private(set) var webhooks: [ApplicationID: [WebhookRecord]] = [:]
  /// The ids by what else names an application, compared byte by byte.
  private(set) var ids: [Lookup: ApplicationID] = [:]

  /// Makes contents that allow nothing.
  init() {}

  /// Reads all tables.
  init(_ store: ApplicationStore, at now: Date, _ db: Database) throws {
    let keys = store.keys
    lastUndoing = try store.lastUndoing(db)
    generation = try ApplicationChange.newestGeneration(db)
    for row in try ApplicationRow.all(db) {
      let entry = try DirectoryEntry(row, keys)
      put(entry)
      let id = entry.record.id
      for grant in try ApplicationStore.grants(of: id, db) { index.put(grant) }
      groups[id] = try ApplicationStore.groups(of: id, db)
      put(webhooks: try ApplicationStore.webhooks(of: id, db), of: id)
      for user in try ApplicationStore.users(of: id, db) {
        verifiers[id, default: [:]][user.record.name] = user.verifier
        index.put(
          user: user.record.name, password: user.verifier.version, roles: user.record.roles, of: id)
      }
      let revocations = try db.rows(
        "SELECT digest, until FROM application_revocation WHERE application_id = ?", id.number)
      while let row = try revocations.next() {
        guard let digest = TokenDigest(stored: try row.bytes(0)) else {
          throw ApplicationStoreError.damaged("a revoked token", of: id)
        }
        index.revoke(digest, of: id, until: Date(ticks: row[1]))
      }
    }
    _ = index.expire(at: now)
  }

  /// Puts the objects of changes in place, up to a generation.
  mutating func apply(_ objects: [Object], through generation: Int64) -> DirectoryChanges {
    self.generation = generation
    var changes = DirectoryChanges()
    // What belongs to an application counts only while that exists.
    for case .application(let id, let entry) in objects {
      if let entry { changes.access.insert(put(entry)) } else { remove(id, &changes) }
    }
    for object in objects {
      switch object {
      case .application: break
      case .grant(let key, let grant):
        guard entries[key.application] != nil else { continue }
        let change = grant.map { index.put($0) } ?? index.removeGrant(key)
        if let change { changes.access.insert(change) }
      case .revocation(let digest, let id, let until):
        guard entries[id] != nil, let until else { continue }
        if let change = index.revoke(digest, of: id, until: until) {
          changes.access.insert(change)
        }
      case .group(let name, let id, let channels):
        guard entries[id] != nil else { continue }
        let old = groups[id]?.updateValue(channels, forKey: name) ?? []
        if channels.isEmpty { groups[id]?[name] = nil }
        if old != channels { changes.groups.insert(.init(application: id, name: name)) }
      case .user(let name, let id, let user):
        guard entries[id] != nil else { continue }
        verifiers[id, default: [:]][name] = user?.verifier
        if verifiers[id]?.isEmpty == true { verifiers[id] = nil }
        let change =
          user.map {
            index.put(
              user: name, password: $0.verifier.version, roles: $0.record.roles, of: id)
          } ?? index.removeUser(name, of: id)
        if let change { changes.access.insert(change) }
      case .webhooks(let id, let webhooks):
        guard entries[id] != nil else { continue }
        put(webhooks: webhooks, of: id)
        changes.webhooks.insert(id)
      }
    }
    return changes
  }

  /// Removes what has ended.
  mutating func expire(at now: Date) -> Set<AccessChange> { index.expire(at: now) }

  /// Every application, group and set of webhooks, of which a full load can have changed each.
  var everything: DirectoryChanges {
    var changes = DirectoryChanges(
      access: Set(entries.keys.map { .application($0) }), webhooks: Set(webhooks.keys))
    for (id, groups) in groups {
      for name in groups.keys { changes.groups.insert(.init(application: id, name: name)) }
    }
    return changes
  }

  @discardableResult
  private mutating func put(_ entry: DirectoryEntry) -> AccessChange {
    let id = entry.record.id
    entries[id] = entry
    groups[id] = groups[id] ?? [:]
    for lookup in Lookup.all(of: entry.record) { ids[lookup] = id }
    return index.put(entry.application)
  }

  private mutating func put(webhooks list: [WebhookRecord], of id: ApplicationID) {
    webhooks[id] = list.isEmpty ? nil : list
  }

  private mutating func remove(_ id: ApplicationID, _ changes: inout DirectoryChanges) {
    guard let entry = entries.removeValue(forKey: id) else { return }
    // A new application can have the name by now.
    for lookup in Lookup.all(of: entry.record) where ids[lookup] == id { ids[lookup] = nil }
    for name in (groups.removeValue(forKey: id) ?? [:]).keys {
      changes.groups.insert(.init(application: id, name: name))
    }
    verifiers[id] = nil
    if webhooks.removeValue(forKey: id) != nil { changes.webhooks.insert(id) }
    if let change = index.removeApplication(id) { changes.access.insert(change) }
  }
}
