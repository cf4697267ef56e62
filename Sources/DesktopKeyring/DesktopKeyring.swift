public import DataVault
internal import FileLayer
internal import Glibc
public import SystemPackage
public import VaultCrypto

/// The keys of vaults in the user's desktop keyring: GNOME Keyring, KWallet, KeePassXC and others with the Secret
/// Service's interface.
///
/// A vault has a key slot ``slotName``, made for the keyring. Its key is 32 random bytes, which the keyring keeps as 64
/// hexadecimal digits. The keyring never receives a password. While the keyring is unlocked, every program of the
/// user's session can read the key.
///
/// If the keyring is locked, its service asks the user to unlock it. A call waits two minutes for the user, and 25
/// seconds for a service that does not answer. The calls use the process's shared connection to the session bus, as
/// libsecret does. A process that outlives its session bus keeps vaults with `SecretServiceStore` instead.
public actor DesktopKeyring {
  /// The name of the key slot that the keyring's key opens.
  public static let slotName = "keyring"
  /// Its identifier, as ``VaultStatus/Slot/identifier``.
  public static let slotIdentifier = "keyfile:\(slotName)"

  /// One for all keyrings of the process: each call changes a setting of the bus connection that they share.
  private static let executor = BlockingExecutor(label: "datavault.desktop-keyring")
  private let attributes: [String: String]
  private let timeouts: KeyringTimeouts

  /// The calling thread of libsecret, which blocks.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe Self.executor.asUnownedSerialExecutor()
  }

  /// The keys of the vaults of one home.
  ///
  /// - Parameters:
  ///   - home: an absolute path, which is part of the items' attributes with symbolic links resolved. After the home is
  ///     moved, its keys are no longer found.
  ///   - store: separates vaults of one name in different stores of the home.
  ///   - application: separates programs that share a home.
  public init(home: FilePath, store: String = "file", application: String = "datavault") {
    self.init(home: home, store: store, application: application, timeouts: .standard)
  }

  package init(
    home: FilePath, store: String = "file", application: String = "datavault",
    timeouts: KeyringTimeouts
  ) {
    attributes = [
      "application": application, "home": home.resolvingLinks().string, "store": store,
    ]
    self.timeouts = timeouts
  }

  private func attributes(of id: VaultID) -> [String: String] {
    attributes.merging(["unlocks": id.rawValue]) { $1 }
  }

  /// The key of a vault: 32 bytes; nil if the keyring has none.
  ///
  /// - Throws: `keyringUnavailable`, `keyringLocked`; `secretUnavailable` for an item without a key.
  public func key(of id: VaultID) throws(VaultError) -> SecretBytes? {
    try withService(for: id) { (service) throws(KeyringFailure) in
      guard
        let text = try service.secret(attributes(of: id), byteCount: HexadecimalKey.textByteCount)
      else { return nil }
      guard let key = HexadecimalKey.key(in: text) else {
        throw KeyringFailure(.unusable, "the keyring's item for vault '\(id)' is not a key")
      }
      return key
    }
  }

  /// The key of a vault, as a secret that opens it.
  ///
  /// ``DataVault/Vault/secret(in:)`` also checks that it does.
  ///
  /// - Throws: `secretUnavailable` if the keyring has none; the errors of ``key(of:)``.
  public func secret(of id: VaultID) throws(VaultError) -> VaultSecret {
    guard let key = try key(of: id) else {
      throw VaultError(
        .secretUnavailable, "the desktop's keyring has no key of vault '\(id)'",
        hint: "open it with its password and store a key: datavault unlock \(id) --remember")
    }
    return .keyFile(key)
  }

  /// Stores the key of a vault, in place of an earlier one.
  ///
  /// - Parameter key: 32 random bytes.
  /// - Throws: `keyringUnavailable`, `keyringLocked`.
  public func setKey(_ key: borrowing SecretBytes, of id: VaultID) throws(VaultError) {
    let text = HexadecimalKey.text(of: key)
    try withService(for: id) { (service) throws(KeyringFailure) in
      let attributes = attributes(of: id)
      try service.store(text, label: "DataVault: key of vault \(id)", attributes)
      // GNOME Keyring answers that it made an item even if the item got no secret.
      guard let stored = try service.secret(attributes, byteCount: text.byteCount),
        SecretBytes.isEqual(stored, text)
      else { throw KeyringFailure(.unreachable, "it did not store the key") }
    }
  }

  /// Removes the key of a vault.
  ///
  /// - Returns: whether there was one.
  /// - Throws: `keyringUnavailable`, `keyringLocked`.
  @discardableResult
  public func removeKey(of id: VaultID) throws(VaultError) -> Bool {
    try withService(for: id) { (service) throws(KeyringFailure) in
      try service.remove(attributes(of: id))
    }
  }

  private func withService<R: ~Copyable>(
    for id: VaultID, _ body: (borrowing SecretService) throws(KeyringFailure) -> R
  ) throws(VaultError) -> R {
    do throws(KeyringFailure) {
      try Self.requireBus()
      return try body(SecretService(timeouts))
    } catch {
      throw error.vaultError(of: id)
    }
  }

  /// Without a bus, GLib would start one, on which there is no keyring.
  private static func requireBus() throws(KeyringFailure) {
    if environmentVariable("DBUS_SESSION_BUS_ADDRESS") != nil { return }
    guard let directory = environmentVariable("XDG_RUNTIME_DIR") else {
      throw KeyringFailure(
        .unreachable,
        "there is no session bus: neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR is set")
    }
    guard unsafe access("\(directory)/bus", F_OK) == 0 else {
      throw KeyringFailure(
        .unreachable,
        "there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set, and \(directory)/bus does not exist"
      )
    }
  }

  private static func environmentVariable(_ name: String) -> String? {
    guard let value = unsafe getenv(name), unsafe value.pointee != 0 else { return nil }
    return unsafe String(cString: value)
  }
}
