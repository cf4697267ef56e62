package import AccessControl
package import DataVault
package import Foundation
internal import GRDB
package import MessagingQueue
package import VaultCrypto

/// The applications of a home, with their grants, revoked tokens and channel groups, in tables
/// beside the engine's.
///
/// Any number of stores, in any number of processes, can share one database. What a call has
/// changed is on the disk when the call returns, and running servers learn of it. The tables are
/// specified in `docs/reference/application-tables.md`.
package final class ApplicationStore: Sendable {
  /// How many rows the tables take.
  package let limits: ApplicationLimits

  /// The keys, for hashes of auth keys; release the store to have them wiped.
  package let keys: ApplicationKeys

  let now: @Sendable () -> Date
  private let engine: MessagingEngine
  private let random: RandomSource

  private init(
    _ engine: MessagingEngine, keys: ApplicationKeys, limits: ApplicationLimits,
    random: RandomSource, now: @escaping @Sendable () -> Date
  ) {
    self.engine = engine
    self.keys = keys
    self.limits = limits
    self.random = random
    self.now = now
  }

  /// Opens the store; the first open makes the tables and their key.
  ///
  /// - Parameters:
  ///   - vault: the vault `messaging` of the engine's home, unlocked. It is not needed later.
  ///   - now: the wall clock, for the ends of grants.
  /// - Throws: `keyMissing`, `wrongKey`, `newerVersion`, `foreignTable`, `damaged`, `vault`, `engine`.
  package static func open(
    _ engine: MessagingEngine, vault: Vault, limits: ApplicationLimits = ApplicationLimits(),
    random: RandomSource = .system, now: @escaping @Sendable () -> Date = { Date() }
  ) async throws(ApplicationStoreError) -> ApplicationStore {
    let operation = "opening the applications' tables"
    let stored = try await translating(operation) {
      guard engine.isReplicated else {
        return try await engine.write { db in
          try ApplicationTables.make(db)
          return try keyCheck(db)
        }
      }
      // The first home has made them, and others have copies.
      return try await engine.read { db in
        try ApplicationTables.requireNewestVersion(db)
        return try keyCheck(db)
      }
    }
    let keys = try await ApplicationKeys.read(
      from: vault, isInUse: stored != nil, iterationCount: limits.passwordIterationCount,
      random: random)
    var check = stored
    if check == nil {
      check = try await translating(operation) { [check = keys.check] in
        try await engine.changeRows(in: replicatedTables) { db in
          try db.run(
            "UPDATE application_state SET key_check = ? WHERE key_check IS NULL", Data(check))
          return try keyCheck(db)
        }
      }
    }
    guard check == keys.check else { throw ApplicationKeys.wrongKey(vault) }
    return ApplicationStore(engine, keys: keys, limits: limits, random: random, now: now)
  }

  private static func keyCheck(_ db: Database) throws -> [UInt8]? {
    let check = try Data.fetchOne(db, sql: "SELECT key_check FROM application_state")
    return check.map { [UInt8]($0) }
  }

  // MARK: - Transactions

  /// The number of the last undoing of changes that came through the log; 0 without one.
  func lastUndoing(_ db: Database) throws -> Int64 { try engine.undone(in: db).last?.number ?? 0 }

  /// Reads the tables in one snapshot.
  func read<Value: Sendable>(
    _ operation: String, _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws(ApplicationStoreError) -> Value {
    try await Self.translating(operation) { [engine] in
      try await engine.read { db in
        try ApplicationTables.requireKnownVersion(db)
        return try body(db)
      }
    }
  }

  /// Changes the tables in one transaction, which other processes learn of if `body` names a change.
  ///
  /// On a home that is one of several, the change goes through the log to all of them.
  ///
  /// - Returns: what `body` returns, once the transaction is on the disk.
  func change<Value: Sendable>(
    _ operation: String,
    _ body: @escaping @Sendable (Database, inout [ApplicationChange]) throws -> Value
  ) async throws(ApplicationStoreError) -> Value {
    let write = { @Sendable [engine, limits] (db: Database) throws -> Value in
      try ApplicationTables.requireKnownVersion(db)
      var changes: [ApplicationChange] = []
      let value = try body(db, &changes)
      if !changes.isEmpty {
        try ApplicationChange.insert(changes, keeping: limits.changeCount, db)
        try engine.noteChange(in: db)
      }
      return value
    }
    return try await Self.translating(operation) { [engine] in
      try await engine.changeRows(in: Self.replicatedTables, write)
    }
  }

  /// Changes what belongs to this home alone, which readers need not learn of.
  func changeHere(
    _ operation: String, _ body: @escaping @Sendable (Database) throws -> Void
  ) async throws(ApplicationStoreError) {
    try await Self.translating(operation) { [engine] in
      try await engine.write { db in
        try ApplicationTables.requireKnownVersion(db)
        try body(db)
      }
    }
  }

  /// The tables whose rows all nodes of a replicated home have; failed logins stay where they happen.
  package static var replicatedTables: Set<String> { ApplicationTables.replicatedNames }

  private static func translating<Value>(
    _ operation: String, _ body: () async throws -> Value
  ) async throws(ApplicationStoreError) -> Value {
    do {
      return try await body()
    } catch {
      throw ApplicationStoreError(translating: error, during: operation)
    }
  }
}

/// Applications.
extension ApplicationStore {
  /// Adds an application with new keys, closed by default.
  ///
  /// - Parameters:
  ///   - name: 1 to 32 of `a-z`, `0-9` and `-`.
  /// - Throws: `invalidArgument`, `alreadyExists`, `tooManyApplications`, `engine`.
  package func addApplication(
    _ name: String, isOpen: Bool = false, retention: ApplicationRetention = .standard
  ) async throws(ApplicationStoreError) -> ApplicationRecord {
    try await change("adding an application") { [keys, limits, random, now] db, changes in
      guard try db.number("SELECT count(*) FROM application") ?? 0 < limits.applicationCount else {
        throw ApplicationStoreError(
          .tooManyApplications, "there are already \(limits.applicationCount) applications",
          hint: "remove one that is not used")
      }
      let id = try ApplicationID(try db.number("SELECT next_id FROM application_state") ?? 0)
      let secretKey = keys.makeSecretKey()
      let application = try Application(
        id: id, name: name, publishKey: "pub-c-\(random.uuid())",
        subscribeKey: "sub-c-\(random.uuid())", secretKey: SecretKey(secretKey.copy()),
        isOpen: isOpen)
      guard try ApplicationRow.find(named: name, db) == nil else {
        throw ApplicationStoreError(
          .alreadyExists, "there is already an application '\(name)'",
          hint: "choose another name, or remove that application")
      }
      let created = now().ticks
      try db.run("UPDATE application_state SET next_id = ?", id.number + 1)
      try db.run(
        """
        INSERT INTO application (id, name, publish_key, subscribe_key, secret_key, is_open, created,
          maximum_age, maximum_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """, id.number, name, application.publishKey, application.subscribeKey,
        Data(try keys.seal(secretKey, of: id, name: name)), isOpen, created, retention.minutes,
        retention.byteCount)
      changes = [.application(id)]
      return ApplicationRecord(
        id: id, name: name, publishKey: application.publishKey,
        subscribeKey: application.subscribeKey, isOpen: isOpen, created: Date(ticks: created),
        retention: retention)
    }
  }

  /// All applications, by their names.
  ///
  /// - Throws: `newerVersion`, `damaged`, `engine`.
  package func applications() async throws(ApplicationStoreError) -> [ApplicationRecord] {
    try await read("listing applications") { db in try ApplicationRow.all(db).map(\.record) }
  }

  /// The application with a name.
  ///
  /// - Throws: `unknownApplication`, `newerVersion`, `damaged`, `engine`.
  package func application(
    named name: String
  ) async throws(ApplicationStoreError) -> ApplicationRecord {
    try await read("reading an application") { db in
      guard let row = try ApplicationRow.find(named: name, db) else {
        throw ApplicationStoreError.unknownApplication(name)
      }
      return row.record
    }
  }

  /// The secret key of an application, for its owner: the text `sec-c-...`.
  ///
  /// - Throws: `unknownApplication`, `damaged`, `newerVersion`, `engine`.
  package func secretKey(
    of id: ApplicationID
  ) async throws(ApplicationStoreError) -> SecretBytes {
    let row = try await read("reading a secret key") { db in try ApplicationRow.require(id, db) }
    return try keys.open(row.sealedSecretKey, of: row.record.id, name: row.record.name)
  }

  /// What makes and reads the tokens of an application.
  ///
  /// - Throws: `unknownApplication`, `damaged`, `newerVersion`, `engine`.
  package func signer(of id: ApplicationID) async throws(ApplicationStoreError) -> TokenSigner {
    let row = try await read("reading a secret key") { db in try ApplicationRow.require(id, db) }
    return try translatingErrors(during: "deriving the key of tokens") {
      try DirectoryEntry(row, keys).signer
    }
  }

  /// Removes an application with its users, grants, revoked tokens, channel groups and webhooks.
  ///
  /// The messages of its channels stay: a new application with its name has them, unless you purge
  /// these channels.
  ///
  /// - Throws: `unknownApplication`, `newerVersion`, `engine`.
  package func removeApplication(_ id: ApplicationID) async throws(ApplicationStoreError) {
    try await change("removing an application") { db, changes in
      try db.run("DELETE FROM application WHERE id = ?", id.number)
      guard db.changesCount > 0 else { throw ApplicationStoreError.unknownApplication(id) }
      for table in [
        "application_grant", "application_revocation", "application_group", "application_user",
        "application_user_role", "application_webhook",
      ] {
        try db.run("DELETE FROM \(table) WHERE application_id = ?", id.number)
      }
      changes = [.application(id)]
    }
  }

  /// Opens an application to everyone, or closes it.
  ///
  /// - Throws: `unknownApplication`, `newerVersion`, `engine`.
  package func setOpen(
    _ isOpen: Bool, of id: ApplicationID
  ) async throws(ApplicationStoreError) {
    try await update(id) { db in
      try db.run("UPDATE application SET is_open = ? WHERE id = ?", isOpen, id.number)
    }
  }

  /// Sets how long the channels of an application keep messages.
  ///
  /// - Throws: `unknownApplication`, `newerVersion`, `engine`.
  package func setRetention(
    _ retention: ApplicationRetention, of id: ApplicationID
  ) async throws(ApplicationStoreError) {
    try await update(id) { db in
      try db.run(
        "UPDATE application SET maximum_age = ?, maximum_bytes = ? WHERE id = ?",
        retention.minutes, retention.byteCount, id.number)
    }
  }

  private func update(
    _ id: ApplicationID, _ body: @escaping @Sendable (Database) throws -> Void
  ) async throws(ApplicationStoreError) {
    try await change("changing an application") { db, changes in
      try body(db)
      guard db.changesCount > 0 else { throw ApplicationStoreError.unknownApplication(id) }
      changes = [.application(id)]
    }
  }
}

extension RandomSource {
  /// A random UUID (RFC 9562, version 4) in lower case.
  fileprivate func uuid() -> String {
    var bytes = bytes(count: 16)
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { Array(bytes[$0]).hexadecimal }
      .joined(separator: "-")
  }
}
