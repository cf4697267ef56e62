package import AccessControl
package import Foundation
internal import GRDB
internal import Synchronization

/// What the tables say now, in memory: applications with their keys, who is allowed what, and
/// channel groups.
///
/// A server loads it when it starts, refreshes it after each notification of the engine and each
/// second, and asks it for every operation. Its keys are wiped when their last user releases them.
package final class ApplicationDirectory: Sendable {
  /// What a refresh has read.
  struct News: Sendable {
    fileprivate enum Change: Sendable {
      case objects([DirectoryContents.Object], through: Int64)
      case everything(DirectoryContents)
    }

    /// The generation and the last undoing that the directory had before the read.
    fileprivate let seen: (generation: Int64, undoing: Int64)
    fileprivate let now: Date
    fileprivate let change: Change
  }

  private let store: ApplicationStore
  private let contents: Mutex<DirectoryContents>

  private init(_ contents: DirectoryContents, _ store: ApplicationStore) {
    self.store = store
    self.contents = Mutex(contents)
  }

  /// Reads all tables of a store.
  ///
  /// - Throws: `damaged` if a secret key does not open, or a row is not as it was stored;
  ///   `newerVersion`, `engine`.
  package static func load(
    _ store: ApplicationStore
  ) async throws(ApplicationStoreError) -> ApplicationDirectory {
    let now = store.now()
    let contents = try await store.read("loading applications") { db in
      try DirectoryContents(store, at: now, db)
    }
    return ApplicationDirectory(contents, store)
  }

  // MARK: - Changes

  /// Applies what has changed since the last load or refresh, and removes what has ended by time.
  ///
  /// Of calls that run together, each change is in the result of one.
  ///
  /// - Returns: what the server must decide again, such as open polls.
  /// - Throws: the errors of ``load(_:)``. Nothing is applied then; the directory goes on with what
  ///   it has.
  package func refresh() async throws(ApplicationStoreError) -> DirectoryChanges {
    while true {
      // Another refresh can have applied changes since the read: read again.
      if let changes = apply(try await news()) { return changes }
    }
  }

  /// Reads what has changed since the last load or refresh.
  func news() async throws(ApplicationStoreError) -> News {
    let seen = contents.withLock { (generation: $0.generation, undoing: $0.lastUndoing) }
    let now = store.now()
    return try await store.read("reading changes of access") { [store] db in
      guard try store.lastUndoing(db) == seen.undoing,
        let changes = try ApplicationChange.all(after: seen.generation, db)
      else {
        return News(
          seen: seen, now: now, change: .everything(try DirectoryContents(store, at: now, db)))
      }
      let objects = try changes.map { try DirectoryContents.Object($0, store.keys, db) }
      return News(
        seen: seen, now: now,
        change: .objects(objects, through: try ApplicationChange.newestGeneration(db)))
    }
  }

  /// Applies what was read; nil if the directory has another generation by now.
  func apply(_ news: News) -> DirectoryChanges? {
    // The old contents are released after the lock.
    var old: DirectoryContents?
    defer { withExtendedLifetime(old) {} }
    return contents.withLock { contents in
      guard (contents.generation, contents.lastUndoing) == news.seen else { return nil }
      switch news.change {
      case .objects(let objects, let generation):
        var changes = contents.apply(objects, through: generation)
        changes.access.formUnion(contents.expire(at: news.now))
        return changes
      case .everything(let new):
        var changes = contents.everything
        changes.access.formUnion(new.everything.access)
        changes.groups.formUnion(new.everything.groups)
        changes.webhooks.formUnion(new.everything.webhooks)
        old = contents
        contents = new
        return changes
      }
    }
  }

  /// Removes grants that have ended by time, without a look at the tables.
  ///
  /// - Returns: whose decisions can differ now.
  package func expire() -> Set<AccessChange> {
    contents.withLock { $0.expire(at: store.now()) }
  }

  /// The next moment at which a grant or a revocation ends by time; nil if none does.
  package var nextEnd: Date? { contents.withLock { $0.index.nextEnd } }

  // MARK: - Questions

  /// Whether a principal can do an operation on a resource now, why, and until when.
  package func decide(
    _ principal: Principal, _ operation: AccessOperation, _ resource: Resource, at now: Date
  ) -> Decision {
    contents.withLock { $0.index.decide(principal, operation, resource, at: now) }
  }

  /// Why a credential allows nothing in an application, whatever is asked for; nil if it counts.
  package func refusal(
    of principal: Principal, in application: ApplicationID, at now: Date
  ) -> Decision.Reason? {
    contents.withLock { $0.index.refusal(of: principal, in: application, at: now) }
  }

  /// Whether a principal can do anything at all in an application now.
  package func hasRight(
    _ principal: Principal, in application: ApplicationID, at now: Date
  ) -> Bool {
    contents.withLock { $0.index.hasRight(principal, in: application, at: now) }
  }

  /// Lends the index, for an audit or for many decisions at one moment.
  ///
  /// - Parameter body: runs under the lock that all decisions take, so keep it short.
  package func withIndex<Result: Sendable, Failure>(
    _ body: (borrowing AccessIndex) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try contents.withLock { (contents) throws(Failure) in try body(contents.index) }
  }

  /// The hash of an auth key.
  ///
  /// - Throws: an error of OpenSSL.
  package func hash(
    _ authKey: [UInt8], of application: ApplicationID
  ) throws -> AuthKeyHash {
    try store.keys.hasher.hash(authKey, of: application)
  }

  /// Whether an application has users, so that its resources ask for a password.
  package func hasUsers(_ application: ApplicationID) -> Bool {
    contents.withLock { $0.verifiers[application] != nil }
  }

  /// The verifier of a user's password; nil if there is no such user.
  package func verifier(of user: Name, of application: ApplicationID) -> PasswordVerifier? {
    contents.withLock { $0.verifiers[application]?[user] }
  }

  /// The webhooks of the applications that have some.
  package var webhooks: [ApplicationID: [WebhookRecord]] { contents.withLock { $0.webhooks } }

  /// All applications, by their names.
  package var applications: [DirectoryEntry] {
    contents.withLock { Array($0.entries.values) }
      .sorted { $0.record.name < $1.record.name }
  }

  /// The application with an id; nil if there is none.
  package func application(_ id: ApplicationID) -> DirectoryEntry? {
    contents.withLock { $0.entries[id] }
  }

  /// The application with a name; nil if there is none.
  package func application(named name: String) -> DirectoryEntry? { find(.name, name) }

  /// The application with a subscribe key; nil if there is none.
  package func application(subscribeKey: String) -> DirectoryEntry? {
    find(.subscribeKey, subscribeKey)
  }

  /// The application with a publish key; nil if there is none.
  package func application(publishKey: String) -> DirectoryEntry? {
    find(.publishKey, publishKey)
  }

  private func find(
    _ kind: DirectoryContents.Lookup.Kind, _ text: String
  ) -> DirectoryEntry? {
    guard let lookup = DirectoryContents.Lookup(kind, text) else { return nil }
    return contents.withLock { contents in contents.ids[lookup].flatMap { contents.entries[$0] } }
  }

  /// The channels of a group; none if there is no such group.
  package func channels(of group: GroupName, of id: ApplicationID) -> Set<ChannelName> {
    contents.withLock { $0.groups[id]?[group] ?? [] }
  }

  /// The groups of an application, in no order.
  package func groups(of id: ApplicationID) -> [GroupName] {
    contents.withLock { ($0.groups[id] ?? [:]).keys.map(\.self) }
  }
}
