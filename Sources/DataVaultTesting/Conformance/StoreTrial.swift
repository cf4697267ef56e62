internal import DataVault

/// One run of a check: access to the store, and the texts of violations.
struct StoreTrial {
  let conformance: VaultStoreConformance
  let check: VaultStoreConformance.Check
  let id: VaultID

  init(_ conformance: VaultStoreConformance, _ check: VaultStoreConformance.Check) throws {
    self.conformance = conformance
    self.check = check
    id = try VaultID("conformance")
  }

  func store() throws -> any VaultStore { try conformance.open() }

  func require(_ condition: Bool, _ otherwise: @autoclosure () -> String) throws {
    guard condition else { throw VaultStoreConformance.Violation(check, otherwise()) }
  }

  /// Writes as a vault does: prepares the store and holds the lock.
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
    try require(store().read(id), is: wanted, "\(when), \(id)")
  }

  private func require(_ bytes: [UInt8]?, is wanted: [UInt8]?, _ what: String) throws {
    try require(
      bytes == wanted, "\(what) has \(Self.size(bytes)) instead of \(Self.size(wanted))")
  }

  func requireIDs(_ wanted: [VaultID], _ when: String) throws {
    let ids = try store().ids()
    try require(ids == wanted, "\(when), ids are \(ids) instead of \(wanted)")
  }

  private static func size(_ bytes: [UInt8]?) -> String {
    bytes.map { "\($0.count) bytes (fingerprint \(fingerprint($0)))" } ?? "nothing"
  }

  /// FNV-1a hash that distinguishes contents in a message.
  private static func fingerprint(_ bytes: [UInt8]) -> String {
    let hash = bytes.reduce(14_695_981_039_346_656_037 as UInt64) {
      ($0 ^ UInt64($1)) &* 1_099_511_628_211
    }
    return String(hash, radix: 16)
  }
}

extension StoreTrial {
  func absentIsAResult() throws {
    try requireBytes(nil, of: id, "before the first vault")
    try requireIDs([], "before the first vault")
    try store().prepare()
    try requireBytes(nil, of: id, "after prepare")
    try requireIDs([], "after prepare")
  }

  func writtenIsRead() throws {
    // Vaults are text, but a store that kept only text could change them.
    let bytes = (0..<2000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    try write(bytes, id)
    try requireBytes(bytes, of: id, "after a write")
    try requireIDs([id], "after a write")
  }

  func writeReplaces() throws {
    let other = try VaultID("other")
    try write(Array("other".utf8), other)
    for bytes in [Array("first".utf8), Array("the second, longer one".utf8), [0x2E]] {
      try write(bytes, id)
      try requireBytes(bytes, of: id, "after a write of \(bytes.count) bytes")
    }
    try requireBytes(Array("other".utf8), of: other, "after writes to another vault")
    try requireIDs([id, other], "after four writes")
  }

  func idsAscend() throws {
    let longest = String(repeating: "z", count: 64)
    let names = ["messaging", "a-b", "0", "a_b", "a", "ab", longest]
    let ids = try names.map { try VaultID($0) }
    for id in ids { try write(Array(id.rawValue.utf8), id) }
    try requireIDs(ids.sorted(), "after writing \(names.count) vaults")
    for id in ids { try requireBytes(Array(id.rawValue.utf8), of: id, "among others") }
  }

  func removedIsAbsent() throws {
    let other = try VaultID("other")
    try write([1], id)
    try write([2], other)
    let store = try store()
    try holding(id, store) { try store.remove(id) }
    try requireBytes(nil, of: id, "after removing it")
    try requireIDs([other], "after removing one of two")
    try holding(id, store) { try store.remove(id) }
    try write([3], id)
    try requireBytes([3], of: id, "created again after removing it")
  }

  func retiredIsAbsent() throws {
    let store = try store()
    var names: Set<String> = []
    for round: UInt8 in 1...3 {
      try write([round], id)
      let name = try holding(id, store) { try store.retire(id) }
      try require(!name.isEmpty, "the side name is empty")
      try require(names.insert(name).inserted, "the side name '\(name)' was given twice")
      try requireBytes(nil, of: id, "after retiring it")
      try requireIDs([], "after retiring the only vault")
    }
    try write([9], id)
    try requireIDs([id], "created again beside retired ones")
  }

  func largeVault() throws {
    try write([1], id)
    // Doubling, because appending byte by byte takes seconds without optimisation.
    var bytes = Array("vault".utf8)
    while bytes.count < conformance.largeByteCount {
      bytes += bytes.prefix(conformance.largeByteCount - bytes.count)
    }
    try write(bytes, id)
    try requireBytes(bytes, of: id, "after a large write")
    try write([2], id)
    try requireBytes([2], of: id, "after a small write over a large one")
  }

  func locationNamesTheVault() throws {
    let location = try store().location(of: id)
    try require(location.contains(id.rawValue), "location '\(location)' does not contain '\(id)'")
  }
}

extension StoreTrial {
  func attemptsAreKept() throws {
    let other = try VaultID("other")
    try write([1], id)
    try write([2], other)
    try requireAttempts(nil, of: id, "before the first")
    try attempting(other) { try $0.writeAttempts([9], for: other, durably: true) }
    for (bytes, durably) in [([1], true), (Array("a longer record".utf8), false), ([3], true)] {
      try attempting(id) { try $0.writeAttempts(bytes, for: id, durably: durably) }
      try requireAttempts(bytes, of: id, "after a write of \(bytes.count) bytes")
    }
    let largest = [UInt8](repeating: 0x20, count: 4096)
    try attempting(id) { try $0.writeAttempts(largest, for: id, durably: true) }
    try requireAttempts(largest, of: id, "after a write of 4096 bytes")
    try store().checkAttemptRecordIsWritable(id)
    try requireAttempts(largest, of: id, "after a probe")
    try attempting(id) { try $0.removeAttempts(id) }
    try requireAttempts(nil, of: id, "after removing it")
    try attempting(id) { try $0.removeAttempts(id) }
    try requireAttempts([9], of: other, "after removing another vault's record")
    try requireBytes([1], of: id, "after writing and removing its record of attempts")
    try requireIDs([id, other], "beside records of attempts")
  }

  func attemptsEndWithTheirVault() throws {
    for isRemoval in [true, false] {
      try write([1], id)
      try attempting(id) { try $0.writeAttempts([1], for: id, durably: true) }
      try write([2], id)
      try requireAttempts([1], of: id, "after a write of the vault")
      let store = try store()
      try holding(id, store) {
        if isRemoval { try store.remove(id) } else { _ = try store.retire(id) }
      }
      try requireAttempts(nil, of: id, "after the vault was \(isRemoval ? "removed" : "retired")")
    }
  }

  func attemptsExclude() throws {
    try write([1], id)
    let (store, other) = (try store(), try store())
    try requireExclusion("lock of attempts") {
      try store.lockAttempts(id)
    } second: {
      try other.lockAttempts(id)
    }
    let lock = try store.lockAttempts(id)
    defer { lock.release() }
    try require(
      isEntered { try other.lock(id) },
      "the lock of attempts prevented a change of the vault")
    let third = try VaultID("other")
    try require(
      isEntered { try other.lockAttempts(third) },
      "the lock of one vault's attempts prevented taking that of another vault")
  }

  /// Obstacles can prevent reading and writing a record, but must not lose one; the probe must
  /// predict a failed write.
  func attemptsSurviveObstacles() throws {
    try write([1], id)
    for obstacle in conformance.obstacles {
      try attempting(id) { try $0.writeAttempts([1], for: id, durably: true) }
      try obstacle.raise()
      let isPossible = (try? store().checkAttemptRecordIsWritable(id)) != nil
      let isWritten =
        (try? attempting(id) { try $0.writeAttempts([2], for: id, durably: true) }) != nil
      try obstacle.clear()
      try requireAttempts([isWritten ? 2 : 1], of: id, "after \(obstacle.code)")
      try require(
        isPossible == isWritten,
        "with \(obstacle.code) a probe \(isPossible ? "succeeds, but a write fails" : "fails, but a write succeeds")"
      )
    }
  }

  private func attempting(
    _ id: VaultID, _ body: (any VaultStore) throws -> Void
  ) throws {
    let store = try store()
    let lock = try store.lockAttempts(id)
    defer { lock.release() }
    try body(store)
  }

  private func requireAttempts(_ wanted: [UInt8]?, of id: VaultID, _ when: String) throws {
    try require(
      store().readAttempts(id), is: wanted, "\(when), the record of attempts on \(id)")
  }
}
