public import DataVault
internal import FileLayer
internal import SystemPackage

/// The record of attempts is a file in the home, not an item of the keyring: it has to be written before
/// a wrong password is answered, also when the keyring has been locked meanwhile.
extension SecretServiceStore {
  private func attemptFile(of id: VaultID) -> AttemptFile {
    AttemptFile(file("\(id).\(attemptsMark).retry"), in: fileSystem)
  }

  /// Applications that share a home must not count against each other's vaults.
  private var attemptsMark: String {
    if application == Self.standardApplication { return "secret-service" }
    let digits = application.utf8.prefix(48).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
    return "secret-service-\(digits.joined())"
  }

  /// The bytes of `<home>/vaults/<id>.secret-service.retry`; nil only when it is absent.
  public func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    try attemptFile(of: id).read()
  }

  /// Replaces `<home>/vaults/<id>.secret-service.retry`.
  public func writeAttempts(
    _ bytes: [UInt8], for id: VaultID, durably: Bool
  ) throws(VaultError) {
    try prepare()
    let owner: FileOwner?
    do throws(FileError) {
      owner = try fileSystem.ownerOfNewFile(in: home.appending("vaults"))
    } catch {
      throw .writeFailed(error)
    }
    try attemptFile(of: id).write(bytes, owner: owner, durably: durably)
  }

  /// Removes `<home>/vaults/<id>.secret-service.retry`, durably; its lock file stays.
  public func removeAttempts(_ id: VaultID) throws(VaultError) {
    try attemptFile(of: id).remove()
  }

  /// Makes `.<id>.secret-service.retry.probe` there and removes it.
  public func probeAttempts(_ id: VaultID) throws(VaultError) {
    try files.checkDirectory()
    try attemptFile(of: id).probe()
  }

  /// Takes `<home>/vaults/<id>.secret-service.retry.lock`; waits half a minute for whoever is making an
  /// attempt.
  public func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try prepare()
    return try attemptFile(of: id).lock(of: id)
  }
}
