package import VaultCrypto

/// The key, identity and state of the one database that a vault belongs to, for VaultedDatabase.
extension Vault {
  /// The database that the vault is bound to or is being bound to, read from the store.
  ///
  /// - Throws: `locked`; the errors of reading.
  package func binding() throws(VaultError) -> DatabaseBinding? {
    try withContents { $0.clear.binding }
  }

  /// The database's keys.
  ///
  /// - Throws: `keyMissing` without a binding; `locked`; the errors of reading.
  package func databaseKeys() throws(VaultError) -> DatabaseKeys {
    try withContents { (opened) throws(VaultError) in
      try opened.contents.withDatabase(of: id) {
        DatabaseKeys(current: $0.current.copy(), pending: SecretBytes.copy(of: $0.pending))
      }
    }
  }

  /// Stores a new key, the database's id and the state `creating`, in one durable write.
  ///
  /// If the creation of a database is unfinished, it writes nothing and returns the key of that
  /// creation; ``binding()`` has the id.
  ///
  /// - Parameter databaseID: 8 bytes.
  /// - Throws: `alreadyExists` if a database is bound; `invalidArgument`, `writeFailed`.
  package func beginBinding(databaseID: [UInt8]) throws(VaultError) -> SecretBytes {
    guard databaseID.count == DatabaseBinding.databaseIDByteCount else {
      throw VaultError(.invalidArgument, "a database's id has 8 bytes")
    }
    if let binding = try binding(), binding.state == .creating {
      return try withContents { (opened) throws(VaultError) in
        try opened.contents.withDatabase(of: id) { $0.current.copy() }
      }
    }
    return try change { (draft) throws(VaultError) in
      guard draft.clear.binding == nil else {
        throw VaultError(.alreadyExists, "vault '\(id)' belongs to a database already")
      }
      let key = SecretBytes.random(
        byteCount: DatabaseSecrets.keyByteCount, from: parameters.random)
      draft.contents.databases = DatabaseSecrets(current: key.copy(), pending: nil)
      draft.clear.binding = DatabaseBinding(databaseID: databaseID, state: .creating)
      return key
    }
  }

  /// Records that the database file is in its place; durable on return.
  ///
  /// Repeated calls change nothing.
  ///
  /// - Throws: `keyMissing` without a binding; `locked`, `writeFailed`.
  package func completeBinding() throws(VaultError) {
    guard let binding = try binding() else { throw .keyMissing(id) }
    if binding.state == .bound { return }
    try change { (draft) throws(VaultError) in
      draft.clear.binding = DatabaseBinding(databaseID: binding.databaseID, state: .bound)
    }
  }

  /// Binds the vault to a salvaged database under the current key, in one durable write.
  ///
  /// The vault forgets the rollback anchor of the damaged database and the key of an unfinished key
  /// change.
  ///
  /// - Parameter databaseID: 8 bytes.
  /// - Throws: `keyMissing` unless a database is bound; `locked`, `writeFailed`.
  package func rebind(databaseID: [UInt8]) throws(VaultError) {
    try change { (draft) throws(VaultError) in
      guard draft.clear.binding?.state == .bound else { throw .keyMissing(id) }
      draft.clear.binding = DatabaseBinding(databaseID: databaseID, state: .bound)
      draft.contents.databases?.pending = nil
      draft.contents.databases?.anchor = nil
    }
  }

  /// Writes a copy of the vault, bound to a copy of its database under the current key, to another store.
  ///
  /// The same secrets open both vaults. The copy keeps the rollback anchor, which the copied database has, and forgets
  /// the key of an unfinished key change.
  ///
  /// - Parameter databaseID: the file id of the copied database, 8 bytes.
  /// - Returns: the copy, unlocked; it is durable.
  /// - Throws: `keyMissing` unless a database is bound; `alreadyExists`; `locked`; the errors of writing.
  package func copy(
    to target: any VaultStore, databaseID: [UInt8]
  ) async throws(VaultError) -> Vault {
    let draft = try withContents { (opened) throws(VaultError) in
      guard opened.clear.binding?.state == .bound else { throw .keyMissing(id) }
      var draft = opened.draft()
      draft.clear.binding = DatabaseBinding(databaseID: databaseID, state: .bound)
      draft.contents.databases?.pending = nil
      return draft
    }
    let copy = Vault(id: id, store: target, parameters: parameters)
    try await copy.begin(with: draft)
    return copy
  }

  private func begin(with draft: consuming sending VaultDraft) throws(VaultError) {
    let lock = try store.lockForNewVault(id)
    defer { lock.release() }
    adopt(try write(draft))
  }

  /// Stores the next key of the database; durable on return.
  ///
  /// - Parameter key: 32 bytes.
  /// - Throws: `keyMissing` without a binding; `keyChangePending` if the vault already holds a
  ///   pending key; `invalidArgument`, `locked`, `writeFailed`.
  package func storePendingKey(_ key: borrowing SecretBytes) throws(VaultError) {
    guard key.byteCount == DatabaseSecrets.keyByteCount else {
      throw VaultError(.invalidArgument, "a database's key has 32 bytes")
    }
    try change { (draft) throws(VaultError) in
      guard draft.contents.databases != nil else { throw .keyMissing(id) }
      try draft.contents.databases?.beginKeyChange(to: key.copy(), ofVault: draft.clear.vaultID)
    }
  }

  /// Makes the pending key the current one; durable on return.
  ///
  /// Without a pending key it changes nothing.
  ///
  /// - Throws: `keyMissing` without a binding; `locked`, `writeFailed`.
  package func promotePendingKey() throws(VaultError) {
    guard try databaseKeys().hasPending() else { return }
    try change { (draft) throws(VaultError) in
      draft.contents.databases?.promotePending()
    }
  }
}

extension VaultContents {
  /// Lends the keys and the anchor of the database.
  ///
  /// - Throws: `keyMissing` without a binding.
  borrowing func withDatabase<R: ~Copyable>(
    of id: VaultID, _ body: (borrowing DatabaseSecrets) -> R
  ) throws(VaultError) -> R {
    switch databases {
    case .none: throw .keyMissing(id)
    case .some(let databases): body(databases)
    }
  }
}

extension VaultError {
  fileprivate static func keyMissing(_ id: VaultID) -> VaultError {
    VaultError(.keyMissing, "vault '\(id)' holds no database key")
  }
}

/// The keys of the database that a vault is bound to, or of a connection profile's database.
package struct DatabaseKeys: ~Copyable, Sendable {
  /// The key that seals the database, 32 bytes.
  package let current: SecretBytes
  /// The next key while a key change is under way; otherwise nil.
  package let pending: SecretBytes?

  package init(current: consuming SecretBytes, pending: consuming SecretBytes? = nil) {
    self.current = current
    self.pending = pending
  }

  /// Whether a key change is under way.
  package borrowing func hasPending() -> Bool { pending != nil }

  /// Returns the pending key and wipes the current one.
  package consuming func takePending() -> SecretBytes? { pending }
}

/// The rollback anchor of the database that a vault is bound to.
extension Vault {
  /// The anchor that the database must hold; nil before the first anchor.
  ///
  /// - Throws: `keyMissing` without a binding; `locked`; the errors of reading.
  package func anchor() throws(VaultError) -> DatabaseAnchor? {
    try evenWhileLocking { () throws(VaultError) in
      try withContents { (opened) throws(VaultError) in
        try opened.contents.withDatabase(of: id) { $0.anchor }
      }
    }
  }

  /// Stores an anchor that the database holds durably; durable on return.
  ///
  /// An anchor that is not newer than the stored one changes nothing, because several engines of
  /// one database can store anchors in any order. This is the only change that is possible while
  /// the vault is being locked.
  ///
  /// - Parameter acceptsOlder: also stores an older anchor, for an accepted rollback.
  /// - Throws: `keyMissing` without a binding; `locked`, `writeFailed`.
  package func storeAnchor(
    _ anchor: DatabaseAnchor, acceptsOlder: Bool = false
  ) throws(VaultError) {
    try evenWhileLocking { () throws(VaultError) in
      if let stored = try self.anchor(), !acceptsOlder, stored.commitNumber >= anchor.commitNumber {
        return
      }
      try change { (draft) throws(VaultError) in
        let stored = try draft.contents.withDatabase(of: id) { $0.anchor }
        guard acceptsOlder || stored.map({ $0.commitNumber < anchor.commitNumber }) ?? true else {
          return
        }
        draft.contents.databases?.anchor = anchor
      }
    }
  }

  private func evenWhileLocking<Result>(
    _ body: () throws(VaultError) -> Result
  ) throws(VaultError) -> Result {
    let refused = refusesWork
    refusesWork = false
    defer { refusesWork = refused }
    return try body()
  }
}
