import FaultVFS
import Glibc
import Synchronization
import Testing
import VaultCrypto

@testable import SealedVFS

@Suite struct PageCipherTests {
  private let header: SealedHeader
  private let cipher: PageCipher

  init() throws {
    let key = TemporaryDatabase.key()
    header = try SealedHeader(fileID: [1, 2, 3, 4, 5, 6, 7, 8], key: key)
    cipher = try PageCipher(.page, key: key, header: header)
  }

  /// A page as SQLite would pass it: 4056 bytes of contents, 40 zeros.
  private func page(_ number: UInt32) -> [UInt8] {
    var page = (0..<4096).map { $0 < 4056 ? UInt8(truncatingIfNeeded: $0 &* 31) : 0 }
    if number == 1 { page.replaceSubrange(0..<16, with: "SQLite format 3\0".utf8) }
    return page
  }

  private func seal(_ page: [UInt8], _ number: UInt32, by cipher: PageCipher? = nil) throws
    -> [UInt8]?
  {
    var sealed = [UInt8](repeating: 0, count: 4096)
    var nonces = NonceSequence()
    let isSealed = try page.withUnsafeBytes { source in
      try sealed.withUnsafeMutableBytes { target in
        try (cipher ?? self.cipher).seal(
          source.baseAddress!, number: number, into: target.baseAddress!, nonces: &nonces)
      }
    }
    return isSealed ? sealed : nil
  }

  private func open(_ sealed: [UInt8], _ number: UInt32, by cipher: PageCipher? = nil) throws
    -> [UInt8]?
  {
    var opened = [UInt8](repeating: 0xEE, count: 4096)
    let isOpen = try sealed.withUnsafeBytes { source in
      try opened.withUnsafeMutableBytes { target in
        try (cipher ?? self.cipher).open(
          source.baseAddress!, number: number, into: target.baseAddress!)
      }
    }
    if !isOpen { #expect(opened.allSatisfy { $0 == 0 }) }
    return isOpen ? opened : nil
  }

  @Test(arguments: [1, 2, 77, 262_144, 0xFFFF_FFFE] as [UInt32])
  func `an opened page equals the sealed one, with zero reserved bytes`(number: UInt32) throws {
    let sealed = try #require(try seal(page(number), number))
    #expect(try open(sealed, number) == page(number))
    #expect(number != 1 || Array(sealed[0..<16]) == header.bytes)
  }

  @Test(arguments: [1, 2] as [UInt32])
  func `a sealed page with any byte changed does not open`(number: UInt32) throws {
    let sealed = try #require(try seal(page(number), number))
    // FaultTests covers page 1's first 16 bytes, which are compared before a page is opened.
    for index in (number == 1 ? 16 : 0)..<4096 {
      var changed = sealed
      changed[index] ^= UInt8(1 << (index % 8))
      #expect(try open(changed, number) == nil, "byte \(index)")
    }
  }

  @Test func `a page opens only under its number, role, file and key`() throws {
    let sealed = try #require(try seal(page(5), 5))
    let key = TemporaryDatabase.key()
    let other = TemporaryDatabase.key(TemporaryDatabase.otherKeyBytes)
    let otherFile = try SealedHeader(fileID: [1, 2, 3, 4, 5, 6, 7, 9], key: key)
    #expect(try open(sealed, 6) == nil)
    #expect(try open(sealed, 1) == nil)
    #expect(try open(sealed, 5, by: PageCipher(.journal, key: key, header: header)) == nil)
    #expect(try open(sealed, 5, by: PageCipher(.page, key: key, header: otherFile)) == nil)
    #expect(try open(sealed, 5, by: PageCipher(.page, key: other, header: header)) == nil)
  }

  @Test func `a page with data in its reserved bytes is not sealed`() throws {
    for index in 4056..<4096 {
      var full = page(3)
      full[index] = 1
      #expect(try seal(full, 3) == nil)
    }
  }

  @Test func `sealing the same page twice never gives the same bytes`() throws {
    let (first, second) = (try #require(try seal(page(2), 2)), try #require(try seal(page(2), 2)))
    #expect(first != second)
    #expect(Array(first[4056..<4080]) != Array(second[4056..<4080]))
  }

  @Test func `keys of different purposes differ, and the key check tells keys apart`() throws {
    let key = TemporaryDatabase.key()
    let other = TemporaryDatabase.key(TemporaryDatabase.otherKeyBytes)
    let matches = try [
      header.matches(key: key), header.matches(key: other),
      SealedHeader(keyCheck: [0, 0, 0, 0], fileID: header.fileID).matches(key: key),
    ]
    #expect(matches == [true, false, false])
    let roles = try [Role.page, .journal, .temporary].map { role in
      let derived = try DerivedKeys.page(role, of: key, fileID: header.fileID)
      return derived.withUnsafeBytes { Array($0) }
    }
    #expect(Set(roles).count == 3)
  }
}

@Suite struct NonceSequenceTests {
  /// A source that counts its draws and returns bytes with the number of the draw.
  private func counting() -> (RandomSource, () -> Int) {
    final class Counter: Sendable { let value = Mutex(0) }
    let counter = Counter()
    let source = RandomSource { target in
      let number = counter.value.withLock {
        $0 += 1
        return $0
      }
      target.initializeMemory(as: UInt8.self, repeating: UInt8(number))
    }
    return (source, { counter.value.withLock { $0 } })
  }

  fileprivate func next(_ nonces: inout NonceSequence) -> [UInt8] {
    var nonce = [UInt8](repeating: 0, count: 24)
    nonce.withUnsafeMutableBytes { nonces.writeNext(to: $0.baseAddress!) }
    return nonce
  }

  /// A nonce with its last twelve bytes counted up by one.
  static func successor(of nonce: [UInt8]) -> [UInt8] {
    var nonce = nonce
    for index in 12..<24 {
      nonce[index] &+= 1
      if nonce[index] != 0 { break }
    }
    return nonce
  }

  @Test func `a run of nonces draws its last 12 bytes once and then counts them up`() {
    let (source, draws) = counting()
    var nonces = NonceSequence(random: source)
    let ones = [UInt8](repeating: 1, count: 12)
    #expect(next(&nonces) == ones + [UInt8](repeating: 2, count: 12))
    for step in 1...100 {
      let nonce = next(&nonces)
      #expect(Array(nonce[0..<12]) == ones)
      #expect(nonce[12] == UInt8(2 + step))
    }
    #expect(draws() == 2)
    nonces.end()
    #expect(next(&nonces) == ones + [UInt8](repeating: 3, count: 12))
    #expect(draws() == 3)
  }

  @Test func `the nonce counter wraps around without changing the first 12 bytes`() {
    let source = RandomSource { target in
      target.initializeMemory(as: UInt8.self, repeating: 0xFF)
    }
    var nonces = NonceSequence(random: source)
    _ = next(&nonces)
    let nonce = next(&nonces)
    #expect(Array(nonce[0..<12]) == [UInt8](repeating: 0xFF, count: 12))
    #expect(Array(nonce[12..<24]) == [UInt8](repeating: 0, count: 12))
  }

  @Test func `a forked child draws a new nonce prefix`() async {
    // In a separate process: a fork keeps one thread, and the locks that other threads hold.
    await #expect(processExitsWith: .success) {
      typealias Fork = @convention(c) () -> Int32
      guard let symbol = dlsym(nil, "fork") else { exit(2) }
      let fork = unsafeBitCast(symbol, to: Fork.self)
      var nonces = NonceSequence(random: .unshared())
      let first = NonceSequenceTests().next(&nonces)
      var pipe: [Int32] = [0, 0]
      Glibc.pipe(&pipe)
      let child = fork()
      let second = NonceSequenceTests().next(&nonces)
      if child == 0 {
        _ = second.withUnsafeBytes { write(pipe[1], $0.baseAddress, 24) }
        _exit(0)
      }
      var childs = [UInt8](repeating: 0, count: 24)
      let count = childs.withUnsafeMutableBytes { read(pipe[0], $0.baseAddress, 24) }
      #expect(count == 24)
      #expect(second[0..<12] == first[0..<12])
      #expect(childs[0..<12] != first[0..<12])
    }
  }

  @Test(arguments: ["FULL", "NORMAL"])  // NORMAL syncs nothing here: only the lock ends a run
  func `every transaction begins a new run of nonces, and no nonce repeats`(
    synchronous: String
  ) throws {
    let (place, connection) = try TemporaryDatabase.logging()
    try connection.run("PRAGMA synchronous = \(synchronous)")
    for commit in 0..<20 { try connection.fill(15, from: commit * 15 + 1) }
    let log = try place.afterKill()
    let bytes = try log.bytes(log.log)
    var nonces: [(commits: Bool, nonce: [UInt8])] = []
    for start in stride(from: 32, to: bytes.count, by: 4120) {
      let commits = bytes[start + 4..<start + 8].contains { $0 != 0 }
      nonces.append((commits, Array(bytes[start + 4080..<start + 4104])))
    }
    #expect(Set(nonces.map(\.nonce)).count == nonces.count)
    #expect(Set(nonces.map { Array($0.nonce[0..<12]) }).count == 1)
    for (before, after) in zip(nonces, nonces.dropFirst()) {
      let isNext = after.nonce == Self.successor(of: before.nonce)
      #expect(isNext == !before.commits)
    }
  }
}
