public import DataVault
package import FileLayer
internal import Glibc
public import SystemPackage

/// Vaults in the user's Secret Service: GNOME Keyring, and other services with this API.
///
/// A vault is one item in the default collection. Its secret is the bytes that a file would hold,
/// and its attributes are `application`, `home` and `vault`. Locks, the record of attempts and
/// their directory are files in the home, as the database is. `docs/explanation/stores.md` says what the
/// service makes durable, and when.
///
/// The store never prompts the user. A locked collection is `storeLocked`. A missing session bus,
/// service or default collection is `storeUnavailable`. Each call makes a new connection, so the
/// store works again after a restart of the service.
public struct SecretServiceStore: VaultStore {
  /// The default application.
  static let standardApplication = "datavault"

  let application: String
  let home: FilePath
  /// The address of the session bus; nil to look it up at each call.
  let busAddress: String?
  let fileSystem: any FileSystem
  /// The directory of the service's files; nil to look it up at each call.
  let keyrings: FilePath?
  /// Called before and after each call over the bus; false ends the conversation.
  let mayContinue: (@Sendable (BusMoment) -> Bool)?
  let busTimeouts: BusTimeouts
  private let busyTimeout: Duration

  /// The vaults of one application and one home.
  ///
  /// - Parameters:
  ///   - application: separates programs that share a home.
  ///   - home: an absolute path, which is created with the first vault. It is part of the
  ///     attributes, with symbolic links resolved: after the home is moved, its vaults are no longer
  ///     found (export them before).
  public init(application: String = "datavault", home: FilePath) {
    self.init(application: application, home: home, busAddress: nil)
  }

  /// - Parameters:
  ///   - busAddress: the address of the session bus; nil to look it up at each call.
  ///   - keyrings: the directory of the service's files; nil to look it up at each call.
  ///   - mayContinue: called before and after each call over the bus; false ends the conversation.
  ///   - busTimeouts: the time to wait for the service.
  ///   - busyTimeout: the time to wait for the lock of a vault.
  package init(
    application: String = "datavault", home: FilePath, busAddress: String?,
    fileSystem: any FileSystem = LinuxFileSystem(), keyrings: FilePath? = nil,
    mayContinue: (@Sendable (BusMoment) -> Bool)? = nil, busTimeouts: BusTimeouts = .standard,
    busyTimeout: Duration = LockFile.busyTimeout
  ) {
    self.application = application
    self.home = home.resolvingLinks()
    self.busAddress = busAddress
    self.fileSystem = fileSystem
    self.keyrings = keyrings
    self.mayContinue = mayContinue
    self.busTimeouts = busTimeouts
    self.busyTimeout = busyTimeout
  }

  /// The item's attributes.
  public func location(of id: VaultID) -> String {
    "secret service: application \(application), home \(home), vault \(id)"
  }

  /// `<home>/run`.
  public var processDirectory: FilePath? { home.appending("run") }

  /// The vaults of this application and home, in ascending order.
  public func ids() throws(VaultError) -> [VaultID] {
    try withService { (service) throws(BusFailure) in
      try readably(service, shared) { (_, items) throws(BusFailure) in
        // Retired and unfinished vaults lack this attribute.
        items.compactMap { $0.attributes[Self.vaultAttribute].flatMap { try? VaultID($0) } }
          .sorted()
      }
    }
  }

  /// The item's secret; nil only if the service answered and has no such item.
  public func read(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    try withService { (service) throws(BusFailure) in
      try readably(service, attributes(of: id)) { (service, items) throws(BusFailure) in
        guard let item = try Self.onlyItem(of: items) else { return nil }
        return try service.secret(of: item)
      }
    }
  }

  /// Replaces the item's secret, or creates an item that gets its name after its secret.
  public func write(_ bytes: [UInt8], for id: VaultID) throws(VaultError) {
    try changing(sending: bytes.count) { (service) throws(BusFailure) in
      if let item = try Self.onlyItem(of: try unlockedItems(service, attributes(of: id))) {
        return try service.setSecret(bytes, of: item)
      }
      try removeUnfinished(id, service)
      let item = try service.createItem(
        in: service.defaultCollection(), label: "DataVault: \(id)",
        attributes: unfinishedAttributes(of: id), secret: bytes)
      guard try service.secret(of: item) == bytes else {
        throw BusFailure(.misunderstood, "the secret service stored other bytes than it was given")
      }
      try service.setAttributes(attributes(of: id), of: item)
    }
  }

  /// Removes the item, the remains of an interrupted write, and the record of attempts.
  public func remove(_ id: VaultID) throws(VaultError) {
    try changing { (service) throws(BusFailure) in
      for item in try unlockedItems(service, attributes(of: id)) { try service.delete(item.path) }
      try removeUnfinished(id, service)
    }
    try removeAttempts(id)
  }

  /// Replaces the item's attribute `vault` by `retired` with the value `<id>.retired-<n>`, and
  /// removes the record of attempts.
  public func retire(_ id: VaultID) throws(VaultError) -> String {
    let name = try renameItem(of: id)
    try removeAttempts(id)
    return name
  }

  private func renameItem(of id: VaultID) throws(VaultError) -> String {
    try changing { (service) throws(BusFailure) in
      guard let item = try Self.onlyItem(of: try unlockedItems(service, attributes(of: id))) else {
        throw BusFailure(.unknownObject, "vault '\(id)' not found")
      }
      let taken = Set(
        try unlockedItems(service, shared).compactMap { $0.attributes[Self.retiredAttribute] })
      var number = 1
      while taken.contains("\(id).retired-\(number)") { number += 1 }
      let name = "\(id).retired-\(number)"
      try service.setAttributes(shared.merging([Self.retiredAttribute: name]) { $1 }, of: item)
      return "secret service: application \(application), home \(home), retired \(name)"
    }
  }

  /// The values of the attribute `retired`.
  public func retiredNames() throws(VaultError) -> [String] {
    try withService { (service) throws(BusFailure) in
      try readably(service, shared) { (_, items) throws(BusFailure) in
        items.compactMap { $0.attributes[Self.retiredAttribute] }.sorted()
      }
    }
  }

  /// Creates the home and its vault directory, which holds the locks and records of attempts.
  public func prepare() throws(VaultError) {
    try files.prepare()
  }

  /// The store of the files that a vault has beside its item.
  var files: FileVaultStore { FileVaultStore(home: home, fileSystem: fileSystem) }

  /// Takes the lock file `<home>/vaults/<id>.secret-service.lock`; waits up to ten seconds for its
  /// holder.
  public func lock(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    // The home might have been deleted while the service kept the vault.
    try prepare()
    return try lockFile(of: id).lock(for: "changing vault '\(id)'", busyTimeout: busyTimeout)
  }

  /// Looks whether `<home>/vaults/<id>.secret-service.lock`, if it is there, is one that this process can lock.
  public func checkLock(of id: VaultID) throws(VaultError) {
    try files.checkDirectory()
    try lockFile(of: id).check()
  }

  private func lockFile(of id: VaultID) -> LockFile {
    LockFile(file("\(id).secret-service.lock"), in: fileSystem)
  }

  /// A file in the directory of the file vaults; their names contain no dot, so names do not
  /// collide.
  func file(_ name: String) -> FilePath { home.appending("vaults").appending(name) }
}
