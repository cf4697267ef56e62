/// The rollback anchor of the database that a vault is bound to.
extension Vault {
  /// The anchor that the database must know; nil before the first.
  ///
  /// - Throws: `keyMissing` without a binding; `locked`; what reading throws.
  package func anchor() throws(VaultError) -> DatabaseAnchor? {
    try evenWhileLocking { () throws(VaultError) in
      try withContents { (open) throws(VaultError) in try open.contents.anchor(of: id) }
    }
  }

  /// Stores an anchor that the database holds durably; durable on return.
  ///
  /// One that is not newer than what is stored changes nothing: several engines of one database may
  /// come in any order. It is the one change that is possible while the vault is being locked.
  ///
  /// - Parameter acceptsOlder: also stores one that is, for a rollback that somebody accepts.
  /// - Throws: `keyMissing` without a binding; `locked`, `writeFailed`.
  package func storeAnchor(
    _ anchor: DatabaseAnchor, acceptsOlder: Bool = false
  ) throws(VaultError) {
    try evenWhileLocking { () throws(VaultError) in
      if let stored = try self.anchor(), !acceptsOlder, stored.commitNumber >= anchor.commitNumber {
        return
      }
      try change { (draft) throws(VaultError) in
        let stored = try draft.contents.anchor(of: id)
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

extension VaultContents {
  fileprivate borrowing func anchor(of id: VaultID) throws(VaultError) -> DatabaseAnchor? {
    switch databases {
    case .none: throw VaultError(.keyMissing, "vault '\(id)' keeps no key of a database")
    case .some(let databases): databases.anchor
    }
  }
}
