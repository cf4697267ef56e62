internal import FileLayer

/// Operations on whole vaults, on an executor that can block.
actor VaultOperations: BlockingActor {
  let store: any VaultStore
  let executor = BlockingExecutor(label: "datavault.operations")

  init(_ store: any VaultStore) {
    self.store = store
  }

  func exists(_ id: VaultID) throws(VaultError) -> Bool {
    try store.read(id) != nil
  }

  func list() throws(VaultError) -> [VaultID] {
    try store.ids()
  }

  func delete(
    _ id: VaultID, force: Bool, databaseMightExist: Bool, parameters: VaultParameters
  ) throws(VaultError) {
    try requireVault(id, evenDamaged: force)
    let lock = try store.lock(id)
    defer { lock.release() }
    let bytes = try requireVault(id, evenDamaged: force)
    if !force {
      let file = try VaultFile(bytes, of: id, in: store)
      guard file.clear.binding == nil || !databaseMightExist else {
        throw VaultError(
          .databaseStillExists, "vault '\(id)' keeps the only key of a database that still exists",
          hint: "delete the database first, or force the deletion and lose the database's contents")
      }
    }
    try store.remove(id)
    endSessionOfGone(id, parameters: parameters)
  }

  func retire(_ id: VaultID, parameters: VaultParameters) throws(VaultError) -> String {
    try requireVault(id)
    let lock = try store.lock(id)
    defer { lock.release() }
    try requireVault(id)
    let name = try store.retire(id)
    endSessionOfGone(id, parameters: parameters)
    return name
  }

  /// - Parameter evenDamaged: treats a vault that is too large to read as an empty one.
  @discardableResult
  private func requireVault(
    _ id: VaultID, evenDamaged: Bool = false
  ) throws(VaultError) -> [UInt8] {
    let bytes: [UInt8]?
    do throws(VaultError) {
      bytes = try store.read(id)
    } catch {
      guard evenDamaged, error.code == .damaged else { throw error }
      return []
    }
    guard let bytes else { throw .doesNotExist(id, in: store) }
    return bytes
  }
}
