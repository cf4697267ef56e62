public import DataVault

extension VaultedDatabase {
  /// Moves the messaging vault from the publicly known standard credentials to the user's own, and
  /// everything under it to new keys: the vault key, the content key and, where there is a
  /// database, its key too, by sealing it anew.
  ///
  /// A vault that does not exist is made, under the user's credentials alone. On return all of it
  /// is durable, and nothing on disk is under a key that the standard credentials ever opened.
  ///
  /// - Throws: `alreadySecured`; `busy` while somebody has the database open, with nothing changed;
  ///   `databaseMissing`, `foreignDatabase`, `keyMissing` as when opening.
  public static func secure(
    _ home: DataVaultHome, with credentials: borrowing Credentials
  ) async throws(VaultedDatabaseError) {
    try await DatabaseKeeper(home: home).secure(with: credentials)
  }

  /// Retires, to a side name, a messaging vault that an earlier installation left: one that is
  /// bound to a database that is not there.
  ///
  /// Only the application or an operator can know that this is a first run: an unmounted volume
  /// looks the same.
  ///
  /// - Returns: the side name, or nil when there was nothing to clean up.
  /// - Throws: when the vault or the database's directory cannot be read; nothing is changed then.
  @discardableResult
  public static func cleanUpFirstRun(
    _ home: DataVaultHome
  ) async throws(VaultedDatabaseError) -> String? {
    try await DatabaseKeeper(home: home).cleanUpFirstRun()
  }

  /// Deletes a vault of this home, without its password.
  ///
  /// - Parameter force: also when the vault's database exists, which nothing opens afterwards.
  /// - Throws: `databaseStillExists` unless forced; `busy` while somebody opens or changes the
  ///   messaging database.
  public static func deleteVault(
    _ id: VaultID, of home: DataVaultHome, force: Bool = false
  ) async throws(VaultedDatabaseError) {
    try await DatabaseKeeper(home: home).deleteVault(id, force: force)
  }
}
