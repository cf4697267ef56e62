internal import DataVault

extension StoreTrial {
  func absentIsAResult() throws {
    try requireBytes(nil, of: id, "before the first vault")
    try requireIDs([], "before the first vault")
    try store().prepare()
    try requireBytes(nil, of: id, "after prepare")
    try requireIDs([], "after prepare")
  }

  func writtenIsRead() throws {
    // Vaults are text; a store that kept text alone would change it some day.
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
    try requireBytes([3], of: id, "made anew after removing it")
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
    try requireIDs([id], "made anew beside retired ones")
  }

  func largeVault() throws {
    try write([1], id)
    // By doubling: byte by byte takes seconds without optimisation.
    var bytes = Array("vault".utf8)
    while bytes.count < conformance.largeByteCount {
      bytes += bytes.prefix(conformance.largeByteCount - bytes.count)
    }
    try write(bytes, id)
    try requireBytes(bytes, of: id, "after a large write")
    try write([2], id)
    try requireBytes([2], of: id, "small again")
  }

  func locationNamesTheVault() throws {
    let id = try id
    let location = try store().location(of: id)
    try require(location.contains(id.rawValue), "'\(location)' does not name \(id)")
  }
}
