internal import DataVault
internal import SystemPackage

/// Which items are whose.
extension SecretServiceStore {
  static let vaultAttribute = "vault"
  static let unfinishedAttribute = "unfinished"
  static let retiredAttribute = "retired"

  /// What all items of this store have.
  var shared: [String: String] { ["application": application, "home": home.string] }

  func attributes(of id: VaultID) -> [String: String] {
    shared.merging([Self.vaultAttribute: id.rawValue]) { $1 }
  }

  /// The attributes of an item that is no vault yet: the service makes an item first and gives it
  /// its secret in a second step.
  func unfinishedAttributes(of id: VaultID) -> [String: String] {
    shared.merging([Self.unfinishedAttribute: id.rawValue]) { $1 }
  }

  /// The items with these attributes, where it is certain that there are no others.
  ///
  /// - Throws: `locked` when one of them is locked, or when there is none while the default
  ///   collection is locked; `unreachable` when there is none and no default collection.
  func unlockedItems(
    _ service: borrowing SecretService, _ attributes: [String: String]
  ) throws(BusFailure) -> [String] {
    let found = try service.search(attributes)
    guard found.locked.isEmpty else {
      throw BusFailure(.locked, "the secret service keeps it in a collection that is locked")
    }
    guard found.unlocked.isEmpty else { return found.unlocked }
    // Not every service shows what is in a locked collection.
    guard let collection = try service.defaultCollection() else { throw Self.noCollection }
    guard try !service.isLocked(collection) else {
      throw BusFailure(.locked, "the default collection of the secret service is locked")
    }
    return []
  }

  /// Finds items and reads them, again if one is gone in between: readers hold no lock.
  func readably<R>(
    _ service: borrowing SecretService, _ attributes: [String: String],
    _ body: (borrowing SecretService, [String]) throws(BusFailure) -> R
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

  static func onlyItem(of items: [String]) throws(BusFailure) -> String? {
    guard items.count <= 1 else {
      throw BusFailure(
        .misunderstood, "the secret service has \(items.count) items that claim to be this vault")
    }
    return items.first
  }

  func removeUnfinished(
    _ id: VaultID, _ service: borrowing SecretService
  ) throws(BusFailure) {
    for item in try service.search(unfinishedAttributes(of: id)).unlocked {
      try service.delete(item)
    }
  }

  static var noCollection: BusFailure {
    BusFailure(.unreachable, "the secret service has no default collection")
  }
}
