internal import ArgumentParser
internal import VaultCrypto

/// What was said of where one key comes from; of three ways one at most.
struct KeyChoice {
  /// Before `key-file`, `key-fd` and `key-item`.
  let prefix: String
  let file: String?
  let descriptor: Int32?
  let item: String?

  var descriptors: [Int32] { [descriptor].compactMap { $0 } }

  func validate() throws {
    guard [file, descriptor.map(String.init), item].count(where: { $0 != nil }) <= 1 else {
      throw ValidationError(
        "give one of --\(prefix)key-file, --\(prefix)key-fd and --\(prefix)key-item")
    }
    try DescriptorRules.check(descriptors)
  }

  var place: KeyPlace? {
    if let file { return .file(file) }
    if let descriptor { return .descriptor(descriptor) }
    return item.map(KeyPlace.item)
  }

  /// The place, which every file must have that is not plain.
  func demand() throws(CommandFailure) -> KeyPlace {
    guard let place else {
      throw CommandFailure(
        .notPermitted,
        prefix.isEmpty ? "the database needs a key" : "the new database needs a key",
        hint: "give --\(prefix)key-file FILE, --\(prefix)key-fd N or "
          + "--\(prefix)key-item VAULT/NAME")
    }
    return place
  }
}
