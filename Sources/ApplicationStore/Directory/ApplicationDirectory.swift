package import AccessControl
package import Foundation
internal import GRDB
internal import Synchronization

/// What the tables say now, in memory: applications with their keys, who is allowed what, and
/// channel groups.
///
/// A server loads it when it starts, refreshes it after each notification of the engine and each
/// second, and asks it for every operation.
package final class ApplicationDirectory: Sendable {
  private struct State {
    var contents: DirectoryContents
    /// Nil after ``close()``.
    var store: ApplicationStore?
  }

  /// What a refresh has read.
  struct News: Sendable {
    fileprivate enum Change: Sendable {
      case objects([DirectoryContents.Object], through: Int64)
      case everything(DirectoryContents)
    }

    /// The generation that the directory had before the read.
    fileprivate let seen: Int64
    fileprivate let now: Date
    fileprivate let change: Change
  }

  private let state: Mutex<State>

  private init(_ contents: DirectoryContents, _ store: ApplicationStore) {
    state = Mutex(State(contents: contents, store: store))
  }

  /// Reads all tables of a store.
  ///
  /// - Throws: `damaged` if a secret key does not open, or a row is not as it was stored;
  ///   `newerVersion`, `engine`.
  package static func load(
    _ store: ApplicationStore
  ) async throws(ApplicationStoreError) -> ApplicationDirectory {
    let now = store.now()
    let contents = try await store.read("loading applications") { [keys = store.keys] db in
      try DirectoryContents(keys, at: now, db)
    }
    return ApplicationDirectory(contents, store)
  }

  // MARK: - Changes

  /// Applies what has changed since the last load or refresh, and removes what has ended by time.
  ///
  /// Of calls that run together, each change is in the result of one.
  ///
  /// - Returns: what the server must decide again, such as open polls.
  /// - Throws: `closed`; the errors of ``load(_:)``. Nothing is applied then; the directory goes on
  ///   with what it has.
  package func refresh() async throws(ApplicationStoreError) -> DirectoryChanges {
    while true {
      // Another refresh can have applied changes since the read: read again.
      if let changes = apply(try await news()) { return changes }
    }
  }

  /// Reads what has changed since the last load or refresh.
  func news() async throws(ApplicationStoreError) -> News {
    let (seen, open) = state.withLock { ($0.contents.generation, $0.store) }
    guard let store = open else { throw Self.closed }
    let now = store.now()
    return try await store.read("reading changes of access") { [keys = store.keys] db in
      guard let changes = try ApplicationChange.all(after: seen, db) else {
        return News(
          seen: seen, now: now, change: .everything(try DirectoryContents(keys, at: now, db)))
      }
      let objects = try changes.map { try DirectoryContents.Object($0, keys, db) }
      return News(
        seen: seen, now: now,
        change: .objects(objects, through: try ApplicationChange.newestGeneration(db)))
    }
  }

  /// Applies what was read; nil if the directory has another generation by now, or is closed.
  func apply(_ news: News) -> DirectoryChanges? {
    // The old contents are released after the lock.
    var old: DirectoryContents?
    defer { withExtendedLifetime(old) {} }
    return state.withLock { state in
      guard state.store != nil, state.contents.generation == news.seen else { return nil }
      switch news.change {
      case .objects(let objects, let generation):
        var changes = state.contents.apply(objects, through: generation)
        changes.access.formUnion(state.contents.expire(at: news.now))
        return changes
      case .everything(let contents):
        var changes = state.contents.everything
        changes.access.formUnion(contents.everything.access)
        changes.groups.formUnion(contents.everything.groups)
        old = state.contents
        state.contents = contents
        return changes
      }
    }
  }

  /// Removes grants that have ended by time, without a look at the tables.
  ///
  /// - Returns: whose decisions can differ now.
  package func expire() -> Set<AccessChange> {
    state.withLock { state in
      guard let now = state.store?.now() else { return [] }
      return state.contents.expire(at: now)
    }
  }

  /// The next moment at which a grant or a revocation ends by time; nil if none does.
  package var nextEnd: Date? { state.withLock { $0.contents.index.nextEnd } }

  /// Drops everything: the directory allows nothing from here on, and its keys are wiped when their
  /// last user releases them.
  package func close() {
    // The old contents are released after the lock.
    let old = state.withLock { state in
      defer { state = State(contents: DirectoryContents(), store: nil) }
      return state.contents
    }
    withExtendedLifetime(old) {}
  }

  private static let closed = ApplicationStoreError(
    .closed, "the directory of applications was closed", hint: "load it again after an unlock")

  // MARK: - Questions

  /// Whether a principal can do an operation on a resource now, why, and until when.
  package func decide(
    _ principal: Principal, _ operation: AccessOperation, _ resource: Resource, at now: Date
  ) -> Decision {
    state.withLock { $0.contents.index.decide(principal, operation, resource, at: now) }
  }

  /// Lends the index, for an audit or for many decisions at one moment.
  ///
  /// - Parameter body: runs under the lock that all decisions take, so keep it short.
  package func withIndex<Result: Sendable, Failure>(
    _ body: (borrowing AccessIndex) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try state.withLock { (state) throws(Failure) in try body(state.contents.index) }
  }

  /// The hash of an auth key; nil after ``close()``.
  ///
  /// - Throws: an error of OpenSSL.
  package func hash(
    _ authKey: [UInt8], of application: ApplicationID
  ) throws -> AuthKeyHash? {
    try state.withLock { $0.store?.keys.hasher }?.hash(authKey, of: application)
  }

  /// Whether an application has users, so that its resources ask for a password.
  package func hasUsers(_ application: ApplicationID) -> Bool {
    state.withLock { $0.contents.verifiers[application] != nil }
  }

  /// The verifier of a user's password; nil if there is no such user.
  package func verifier(of user: Name, of application: ApplicationID) -> PasswordVerifier? {
    state.withLock { $0.contents.verifiers[application]?[user] }
  }

  /// All applications, by their names.
  package var applications: [DirectoryEntry] {
    state.withLock { Array($0.contents.entries.values) }
      .sorted { $0.record.name < $1.record.name }
  }

  /// The application with an id; nil if there is none.
  package func application(_ id: ApplicationID) -> DirectoryEntry? {
    state.withLock { $0.contents.entries[id] }
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
    return state.withLock { state in
      state.contents.ids[lookup].flatMap { state.contents.entries[$0] }
    }
  }

  /// The channels of a group; none if there is no such group.
  package func channels(of group: GroupName, of id: ApplicationID) -> Set<ChannelName> {
    state.withLock { $0.contents.groups[id]?[group] ?? [] }
  }

  /// The groups of an application, in no order.
  package func groups(of id: ApplicationID) -> [GroupName] {
    state.withLock { ($0.contents.groups[id] ?? [:]).keys.map(\.self) }
  }
}
