internal import DataVault
internal import FileLayer
internal import SystemPackage

/// The connection to the service, one for each call, and the translation of its failures.
extension SecretServiceStore {
  /// Runs read operations on the service.
  func withService<R>(
    _ body: (borrowing SecretService) throws(BusFailure) -> R
  ) throws(VaultError) -> R {
    try converting(Self.readFailure) { () throws(BusFailure) in try body(try connect()) }
  }

  /// Runs changes on the service; durable on return, if the service synchronizes its own files.
  ///
  /// - Parameter byteCount: the size of the sent data in bytes, for the error if it might be too
  ///   large.
  func changing<R>(
    sending byteCount: Int = 0,
    _ body: (borrowing SecretService) throws(BusFailure) -> R
  ) throws(VaultError) -> R {
    let service = try converting(Self.readFailure) { () throws(BusFailure) in try connect() }
    let result = try converting({ Self.writeFailure($0, byteCount) }) { () throws(BusFailure) in
      try body(service)
    }
    try synchronizeKeyrings()
    return result
  }

  /// The size from which a bus with lower limits might refuse a vault; the usual limit is 128 MiB.
  private static let largeByteCount = 1 << 20

  private func connect() throws(BusFailure) -> SecretService {
    let address = if let busAddress { busAddress } else { try BusAddress.ofSession() }
    return try SecretService(
      BusConnection(
        address: address, service: SecretService.name, timeouts: busTimeouts,
        mayContinue: mayContinue))
  }

  /// Makes the last step of GNOME Keyring durable.
  ///
  /// Before it answers, it writes a keyring to a temporary file, calls fsync and renames it, but it
  /// does not synchronize the directory. A database that is sealed under a key which only this
  /// write contains must not be more durable than the write.
  private func synchronizeKeyrings() throws(VaultError) {
    guard let directory = keyrings ?? Self.keyringDirectory else { return }
    do throws(FileError) {
      guard try fileSystem.status(of: directory) != nil else { return }
      try fileSystem.synchronizeDirectory(directory)
    } catch {
      throw VaultError(
        .writeFailed, "\(error)",
        hint:
          "the disk did not confirm the change; open the vault again to see whether it happened",
        underlying: error)
    }
  }

  /// The directory of GNOME Keyring's files, unless it was started with another environment.
  private static var keyringDirectory: FilePath? {
    if let data = environmentVariable("XDG_DATA_HOME") {
      return FilePath(data).appending("keyrings")
    }
    return environmentVariable("HOME").map { FilePath($0).appending(".local/share/keyrings") }
  }

  private static func readFailure(_ failure: BusFailure) -> VaultError {
    switch failure.kind {
    case .locked:
      VaultError(
        .storeLocked, "\(failure)", hint: "unlock the login keyring, for example by logging in",
        underlying: failure)
    case .unreachable, .unanswered:
      VaultError(
        .storeUnavailable, "\(failure)",
        hint: "start a session with a keyring (gnome-keyring-daemon), or keep the vault in a file",
        underlying: failure)
    case .refused, .unknownObject, .misunderstood:
      VaultError(.unreadable, "the secret service: \(failure)", underlying: failure)
    }
  }

  private static func writeFailure(_ failure: BusFailure, _ byteCount: Int) -> VaultError {
    switch failure.kind {
    case .locked, .unreachable: readFailure(failure)
    case .unanswered:
      VaultError(
        .writeFailed, "the secret service did not confirm the change: \(failure)",
        // A bus closes the connection if a message is too long, and does not say why.
        hint: byteCount < largeByteCount
          ? "open the vault again to see whether it happened"
          : "open the vault again to see whether it happened; its \(byteCount) bytes might exceed the limit of this session bus",
        underlying: failure)
    case .refused, .unknownObject, .misunderstood:
      VaultError(
        .writeFailed, "the secret service refused the change: \(failure)",
        hint: "open the vault as before; it is unchanged", underlying: failure)
    }
  }
}
