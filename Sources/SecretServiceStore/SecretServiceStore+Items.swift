public import DataVault
internal import FileLayer
internal import SystemPackage

/// The items of the service and their attributes.
extension SecretServiceStore {
  static let vaultAttribute = "vault"
  static let unfinishedAttribute = "unfinished"
  static let retiredAttribute = "retired"

  /// The attributes that all items of this store share.
  var shared: [String: String] { ["application": application, "home": home.string] }

  func attributes(of id: VaultID) -> [String: String] {
    shared.merging([Self.vaultAttribute: id.rawValue]) { $1 }
  }

  /// The attributes of an unfinished item.
  ///
  /// The service creates an item first and stores its secret in a second step.
  func unfinishedAttributes(of id: VaultID) -> [String: String] {
    shared.merging([Self.unfinishedAttribute: id.rawValue]) { $1 }
  }

  /// The items with these attributes, if it is certain that there are no others.
  ///
  /// - Throws: `locked` if one of them is locked, or if none is found while the default collection
  ///   is locked; `unreachable` if none is found and there is no default collection.
  func unlockedItems(
    _ service: borrowing SecretService, _ attributes: [String: String]
  ) throws(BusFailure) -> [ServiceItem] {
    let items = try itemsInSight(service, attributes)
    guard items.isEmpty else { return items }
    // Some services hide the items of a locked collection.
    guard try !service.isLocked(try service.defaultCollection()) else {
      throw BusFailure(.locked, "the default collection of the secret service is locked")
    }
    // The collection might have been unlocked since the search, as happens during a login.
    return try itemsInSight(service, attributes)
  }

  /// The items that the service finds.
  ///
  /// - Throws: `locked` if one of them is locked.
  private func itemsInSight(
    _ service: borrowing SecretService, _ attributes: [String: String]
  ) throws(BusFailure) -> [ServiceItem] {
    let found = try service.search(attributes)
    guard found.locked.isEmpty else {
      throw BusFailure(.locked, "the secret service holds the vault in a locked collection")
    }
    return try checkedItems(found.unlocked, service, attributes)
  }

  /// The found items with their attributes.
  ///
  /// - Throws: `misunderstood` for an item that does not match the search: it belongs to another
  ///   program, and would be read, replaced or removed instead of a vault.
  private func checkedItems(
    _ paths: [String], _ service: borrowing SecretService, _ attributes: [String: String]
  ) throws(BusFailure) -> [ServiceItem] {
    var items: [ServiceItem] = []
    for path in paths {
      let item = ServiceItem(path: path, attributes: try service.attributes(of: path))
      guard attributes.allSatisfy({ item.attributes[$0.key] == $0.value }) else {
        throw BusFailure(
          .misunderstood, "the secret service returned an item that does not match the search")
      }
      items.append(item)
    }
    return items
  }

  /// Finds items and reads them; repeats this if an item disappears, because readers hold no lock.
  func readably<R>(
    _ service: borrowing SecretService, _ attributes: [String: String],
    _ body: (borrowing SecretService, [ServiceItem]) throws(BusFailure) -> R
  ) throws(BusFailure) -> R {
    for _ in 0..<3 {
      do throws(BusFailure) {
        return try body(service, try unlockedItems(service, attributes))
      } catch {
        guard error.kind == .unknownObject else { throw error }
      }
    }
    return try body(service, try unlockedItems(service, attributes))
  }

  static func onlyItem(of items: [ServiceItem]) throws(BusFailure) -> String? {
    guard items.count <= 1 else {
      throw BusFailure(
        .misunderstood, "the secret service has \(items.count) items for the same vault")
    }
    return items.first?.path
  }

  func removeUnfinished(
    _ id: VaultID, _ service: borrowing SecretService
  ) throws(BusFailure) {
    let attributes = unfinishedAttributes(of: id)
    let unlocked = try service.search(attributes).unlocked
    for item in try checkedItems(unlocked, service, attributes) { try service.delete(item.path) }
  }
}

/// An item that the service found.
struct ServiceItem: Sendable {
  let path: String
  let attributes: [String: String]
}

/// The record of attempts, which is a file in the home instead of an item in the keyring.
///
/// It must be writable before a wrong password is answered, even if the keyring has been locked
/// since.
extension SecretServiceStore {
  private func attemptFile(of id: VaultID) -> AttemptFile {
    AttemptFile(file("\(id).\(attemptsMark).retry"), in: fileSystem)
  }

  /// Part of the file name: the attempts of applications that share a home are counted separately.
  private var attemptsMark: String {
    if application == Self.standardApplication { return "secret-service" }
    let digits = application.utf8.prefix(48).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
    return "secret-service-\(digits.joined())"
  }

  /// The bytes of `<home>/vaults/<id>.secret-service.retry`; nil only if the file does not exist.
  public func readAttempts(_ id: VaultID) throws(VaultError) -> [UInt8]? {
    try attemptFile(of: id).read()
  }

  /// Replaces `<home>/vaults/<id>.secret-service.retry`.
  public func writeAttempts(
    _ bytes: [UInt8], for id: VaultID, durably: Bool
  ) throws(VaultError) {
    try prepare()
    let owner = try converting(VaultError.writeFailed) { () throws(FileError) in
      try fileSystem.ownerOfNewFile(in: home.appending("vaults"))
    }
    try attemptFile(of: id).write(bytes, owner: owner, durably: durably)
  }

  /// Removes `<home>/vaults/<id>.secret-service.retry`, durably; its lock file stays.
  public func removeAttempts(_ id: VaultID) throws(VaultError) {
    try attemptFile(of: id).remove()
  }

  /// Creates `.<id>.secret-service.retry.probe` there and removes it.
  public func checkAttemptRecordIsWritable(_ id: VaultID) throws(VaultError) {
    try files.checkDirectory()
    try attemptFile(of: id).probe()
  }

  /// Takes `<home>/vaults/<id>.secret-service.retry.lock`; waits up to half a minute for the
  /// attempt that holds it.
  public func lockAttempts(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try prepare()
    return try attemptFile(of: id).lock(of: id)
  }
}
