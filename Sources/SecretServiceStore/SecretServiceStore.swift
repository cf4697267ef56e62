public import DataVault
package import FileLayer
internal import Glibc
public import SystemPackage

/// Vaults in the user's Secret Service: GNOME Keyring, and what else speaks its API.
///
/// A vault is one item in the default collection, whose secret is the bytes that a file would hold
/// and whose attributes are `application`, `home` and `vault`. Locks, the record of attempts and the
/// directory that they need are files in the home, as the database is. `docs/explanation/stores.md` says what the service makes
/// durable, and when.
///
/// Nothing is ever asked at the screen: a locked collection is `storeLocked`; no session bus, no
/// service on it, or no default collection is `storeUnavailable`. Each call connects anew, so a
/// service that was restarted is found again.
public struct SecretServiceStore: VaultStore {
  /// Whose vaults these are unless a program says otherwise.
  static let standardApplication = "datavault"

  let application: String
  let home: FilePath
  /// Where the session bus is; nil to look at each call.
  let busAddress: String?
  let fileSystem: any FileSystem
  /// Where the service keeps its files; nil to look at each call.
  let keyrings: FilePath?
  let interruption: BusFaultInjector?
  let busPatience: BusTimeouts
  private let patience: Duration

  /// The vaults of one application and one home.
  ///
  /// - Parameters:
  ///   - application: keeps programs apart that share a home.
  ///   - home: an absolute path, which need not exist before the first vault is made. Part of the
  ///     attributes: a home that is moved no longer finds its vaults (export them before).
  public init(application: String = "datavault", home: FilePath) {
    self.init(application: application, home: home, busAddress: nil)
  }

  /// - Parameters:
  ///   - busAddress: where the session bus is; nil to look at each call.
  ///   - keyrings: where the service keeps its files; nil to look at each call.
  ///   - interruption: ends the conversation with the service, for tests.
  ///   - busPatience: how long the service is waited for.
  ///   - patience: how long the lock of a vault is waited for.
  package init(
    application: String = "datavault", home: FilePath, busAddress: String?,
    fileSystem: any FileSystem = LinuxFileSystem(), keyrings: FilePath? = nil,
    interruption: BusFaultInjector? = nil, busPatience: BusTimeouts = .standard,
    patience: Duration = LockFile.patience
  ) {
    self.application = application
    self.home = home.lexicallyNormalized()
    self.busAddress = busAddress
    self.fileSystem = fileSystem
    self.keyrings = keyrings
    self.interruption = interruption
    self.busPatience = busPatience
    self.patience = patience
  }

  /// The item's attributes.
  public func location(of id: VaultID) -> String {
    "secret service: application \(application), home \(home), vault \(id)"
  }

  /// The vaults of this application and home, ascending.
  public func ids() throws(VaultError) -> [VaultID] {
    try withService { (service) throws(BusFailure) in
      try readably(service, shared) { (_, items) throws(BusFailure) in
        // Retired vaults and those being made have no such attribute.
        items.compactMap { $0.attributes[Self.vaultAttribute].flatMap { try? VaultID($0) } }
          .sorted()
      }
    }
  }

  /// The item's secret; nil only where the service could be asked and has no such item.
  public func read(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    try withService { (service) throws(BusFailure) in
      try readably(service, attributes(of: id)) { (service, items) throws(BusFailure) in
        guard let item = try Self.onlyItem(of: items) else { return nil }
        return try service.secret(of: item)
      }
    }
  }

  /// Replaces the item's secret, or makes an item that gets its name when its secret is in it.
  public func write(_ bytes: [UInt8], for id: VaultID) throws(VaultError) {
    try changing(sending: bytes.count) { (service) throws(BusFailure) in
      if let item = try Self.onlyItem(of: try unlockedItems(service, attributes(of: id))) {
        return try service.setSecret(bytes, of: item)
      }
      try removeUnfinished(id, service)
      guard let collection = try service.defaultCollection() else { throw Self.noCollection }
      let item = try service.createItem(
        in: collection, label: "DataVault: \(id)", attributes: unfinishedAttributes(of: id),
        secret: bytes)
      guard try service.secret(of: item) == bytes else {
        throw BusFailure(.misunderstood, "the secret service kept something else than it was given")
      }
      try service.setAttributes(attributes(of: id), of: item)
    }
  }

  /// Removes the item, what an interrupted write left of it, and the record of attempts.
  public func remove(_ id: VaultID) throws(VaultError) {
    try changing { (service) throws(BusFailure) in
      for item in try unlockedItems(service, attributes(of: id)) { try service.delete(item.path) }
      try removeUnfinished(id, service)
    }
    try removeAttempts(id)
  }

  /// Takes the attribute `vault` from the item and gives it `retired`: `<id>.retired-<n>`; removes the
  /// record of attempts.
  public func retire(_ id: VaultID) throws(VaultError) -> String {
    let name = try renameItem(of: id)
    try removeAttempts(id)
    return name
  }

  private func renameItem(of id: VaultID) throws(VaultError) -> String {
    try changing { (service) throws(BusFailure) in
      guard let item = try Self.onlyItem(of: try unlockedItems(service, attributes(of: id))) else {
        throw BusFailure(.unknownObject, "there is no vault '\(id)' to retire")
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

  /// What stands in the attribute `retired` of items.
  public func retiredNames() throws(VaultError) -> [String] {
    try withService { (service) throws(BusFailure) in
      try readably(service, shared) { (_, items) throws(BusFailure) in
        items.compactMap { $0.attributes[Self.retiredAttribute] }.sorted()
      }
    }
  }

  /// Makes the home and its directory of vaults, in which locks and records of attempts are.
  public func prepare() throws(VaultError) {
    try files.prepare()
  }

  /// What keeps the files that a vault has beside its item.
  var files: FileVaultStore { FileVaultStore(home: home, fileSystem: fileSystem) }

  /// Takes the lock file `<home>/vaults/<id>.secret-service.lock`; waits ten seconds for whoever holds
  /// it.
  public func lock(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    // The home may have gone while the service kept the vault.
    try prepare()
    return try LockFile(file("\(id).secret-service.lock"), in: fileSystem)
      .lock(for: "changing vault '\(id)'", patience: patience)
  }

  /// A file beside the vaults that are kept in files; no vault's name has a dot.
  func file(_ name: String) -> FilePath { home.appending("vaults").appending(name) }
}
