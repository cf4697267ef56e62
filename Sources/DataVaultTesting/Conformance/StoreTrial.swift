internal import DataVault

/// One check at work: the place, and the words for what goes wrong.
struct StoreTrial {
  let conformance: VaultStoreConformance
  let check: VaultStoreConformance.Check

  init(_ conformance: VaultStoreConformance, _ check: VaultStoreConformance.Check) {
    self.conformance = conformance
    self.check = check
  }

  var id: VaultID {
    get throws { try VaultID("conformance") }
  }

  func store() throws -> any VaultStore { try conformance.open() }

  func require(_ condition: Bool, _ otherwise: @autoclosure () -> String) throws {
    guard condition else { throw VaultStoreConformance.Violation(check, otherwise()) }
  }

  /// Writes as a vault does: the place is prepared, the lock is held.
  func write(_ bytes: [UInt8], _ id: VaultID) throws {
    let store = try store()
    try store.prepare()
    try holding(id, store) { try store.write(bytes, for: id) }
  }

  func holding<R>(_ id: VaultID, _ store: any VaultStore, _ body: () throws -> R) throws -> R {
    let lock = try store.lock(id)
    defer { lock.release() }
    return try body()
  }

  func requireBytes(_ wanted: [UInt8]?, of id: VaultID, _ when: String) throws {
    let bytes = try store().read(id)
    try require(
      bytes == wanted,
      "\(when), \(id) has \(Self.size(bytes)) instead of \(Self.size(wanted))")
  }

  func requireIDs(_ wanted: [VaultID], _ when: String) throws {
    let ids = try store().ids()
    try require(ids == wanted, "\(when), ids are \(ids) instead of \(wanted)")
  }

  private static func size(_ bytes: [UInt8]?) -> String {
    bytes.map { "\($0.count) bytes (fingerprint \(fingerprint($0)))" } ?? "nothing"
  }

  /// FNV-1a: tells contents apart in a message.
  private static func fingerprint(_ bytes: [UInt8]) -> String {
    let hash = bytes.reduce(14_695_981_039_346_656_037 as UInt64) {
      ($0 ^ UInt64($1)) &* 1_099_511_628_211
    }
    return String(hash, radix: 16)
  }
}
