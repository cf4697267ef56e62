internal import DataVault
internal import FileLayer
internal import VaultedDatabase

extension DataVaultHome {
  /// Whether there is a file where the messages belong.
  func hasDatabase() throws -> Bool {
    try fileSystem.status(of: databasePath) != nil
  }

  /// The live session of a vault; where the kernel refuses sessions, there is none.
  func liveSession(of id: VaultID) async throws -> VaultSession? {
    do throws(VaultError) {
      return try await VaultSession.find(id, in: store)
    } catch {
      guard error.code == .sessionsUnavailable else { throw error }
      return nil
    }
  }

  /// For who would make a vault: one that a session names was there.
  func requireNoSession(of id: VaultID) async throws {
    guard try await liveSession(of: id) != nil else { return }
    throw CommandFailure(
      .absent,
      "a session opens vault \(id) of \(path), which is not there: none was made in its place",
      hint:
        "check that the file system of the home is mounted, or end the session with datavault lock "
        + "\(id)")
  }
}
