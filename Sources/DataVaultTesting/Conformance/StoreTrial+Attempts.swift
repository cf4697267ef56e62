internal import DataVault

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
    try store().probeAttempts(id)
    try requireAttempts(largest, of: id, "after a probe")
    try attempting(id) { try $0.removeAttempts(id) }
    try requireAttempts(nil, of: id, "after removing it")
    try attempting(id) { try $0.removeAttempts(id) }
    try requireAttempts([9], of: other, "after another vault's was removed")
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
    let id = try id
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
      "the lock of attempts kept the vault from being changed")
    let third = try VaultID("other")
    try require(
      isEntered { try other.lockAttempts(third) },
      "the lock of one vault's attempts kept another vault's from being taken")
  }

  /// Obstacles may keep a record from being read and written, but never lose one, and a probe foretells which.
  func attemptsSurviveObstacles() throws {
    let id = try id
    try write([1], id)
    for obstacle in conformance.obstacles {
      try attempting(id) { try $0.writeAttempts([1], for: id, durably: true) }
      try obstacle.raise()
      let isPossible = (try? store().probeAttempts(id)) != nil
      let isWritten =
        (try? attempting(id) { try $0.writeAttempts([2], for: id, durably: true) }) != nil
      try obstacle.clear()
      try requireAttempts([isWritten ? 2 : 1], of: id, "after \(obstacle.code)")
      try require(
        isPossible == isWritten,
        "with \(obstacle.code) a probe \(isPossible ? "succeeds" : "fails"), and a write does not")
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
    let bytes = try store().readAttempts(id)
    try require(
      bytes == wanted,
      """
      \(when), the record of attempts on \(id) has \(bytes.map { "\($0.count)" } ?? "no") bytes, \
      and not the \(wanted.map { "\($0.count)" } ?? "none") that it should have
      """)
  }
}
