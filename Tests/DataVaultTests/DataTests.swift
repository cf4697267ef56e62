import DataVaultTesting
import TestSupport
import Testing
import VaultCrypto

@testable import DataVault

/// Data that a caller seals under a subkey of the vault: `docs/reference/sealed-data-format.md`.
@Suite struct DataTests {
  /// Lengths around the ends of chunks.
  static let lengths = [0, 1, 100, 65535, 65536, 65537, 131072, 200_000]

  private func vault(_ id: VaultID = .messaging) async throws -> Vault {
    try await FastTestVault.create(
      id, in: InMemoryVaultStore(), credentials: credentials("password"))
  }

  private func sample(_ byteCount: Int) -> [UInt8] {
    (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
  }

  @Test(arguments: lengths)
  func `data opens unchanged and is sealed differently each time`(byteCount: Int) async throws {
    let vault = try await vault()
    let data = sample(byteCount)
    let sealed = try await vault.encrypt(SecretBytes(copying: data), context: [1, 2])
    #expect(sealed.count == byteCount + 44 + 16 * max(1, (byteCount + 65535) / 65536))
    #expect(try await vault.decrypt(sealed, context: [1, 2]).array() == data)
    let again = try await vault.encrypt(SecretBytes(copying: data), context: [1, 2])
    #expect(again != sealed)
  }

  @Test(arguments: [1, 999, 65536, 70_000])
  func `a stream in pieces of any length equals the whole`(piece: Int) async throws {
    let vault = try await vault()
    let data = sample(200_000)
    var encryptor = try await vault.encryptor(context: [9])
    var sealed = encryptor.header
    for start in stride(from: 0, to: data.count, by: piece) {
      let bytes = Array(data[start..<min(start + piece, data.count)])
      sealed += try encryptor.update(bytes.span.bytes)
    }
    sealed += try encryptor.finish()
    #expect(try await vault.decrypt(sealed, context: [9]).array() == data)
    var decryptor = try await vault.decryptor(
      header: Array(sealed.prefix(DataDecryptor.headerByteCount)), context: [9])
    var opened: [UInt8] = []
    for start in stride(from: DataDecryptor.headerByteCount, to: sealed.count, by: piece) {
      let bytes = Array(sealed[start..<min(start + piece, sealed.count)])
      opened += try decryptor.update(bytes.span.bytes).array()
    }
    opened += try decryptor.finish().array()
    #expect(opened == data)
  }

  @Test func `data that is truncated anywhere is refused`() async throws {
    let vault = try await vault()
    let sealed = try await vault.encrypt(SecretBytes(copying: sample(140_000)))
    let chunk = 65536 + 16
    let ends = [0, 1, 43, 44, 45, 59, 60, 44 + chunk - 1, 44 + chunk, 44 + chunk + 1]
    for end in ends + [44 + 2 * chunk, sealed.count - 17, sealed.count - 1] {
      let refusal = await code { _ = try await vault.decrypt(Array(sealed[..<end])) }
      // At the end of a chunk the data is truncated; elsewhere the last chunk does not open.
      let isBetween = end < 60 || (end - 44) % chunk < 16
      #expect(refusal == (isBetween ? .truncated : .damaged), "\(end)")
    }
    let longer = await code { _ = try await vault.decrypt(sealed + [0]) }
    #expect(longer == .damaged)
  }

  @Test func `a changed byte, exchanged chunks and another context are refused`() async throws {
    let vault = try await vault()
    let data = sample(150_000)
    let sealed = try await vault.encrypt(SecretBytes(copying: data), context: [1])
    for index in [12, 43, 44, 65_000, 65_590, 131_100, sealed.count - 1] {
      var changed = sealed
      changed[index] ^= 0x10
      #expect(await code { _ = try await vault.decrypt(changed, context: [1]) } == .damaged)
    }
    let chunk = 65536 + 16
    let exchanged =
      sealed[..<44] + sealed[(44 + chunk)..<(44 + 2 * chunk)] + sealed[44..<(44 + chunk)]
      + sealed[(44 + 2 * chunk)...]
    #expect(await code { _ = try await vault.decrypt(Array(exchanged), context: [1]) } == .damaged)
    #expect(await code { _ = try await vault.decrypt(sealed, context: []) } == .damaged)
    let another = try await vault.encrypt(SecretBytes(copying: data), context: [1])
    let mixed = Array(sealed[..<(44 + chunk)] + another[(44 + chunk)...])
    #expect(await code { _ = try await vault.decrypt(mixed, context: [1]) } == .damaged)
  }

  /// Found by the fuzzer: such a stream opened to the same data as the stream without that chunk.
  @Test func `an empty chunk after others is refused, even with a valid tag`() async throws {
    let keys = DataKeys(random: .system)
    let header = DataHeader(keyID: try DataHeader.keyID(of: keys.newest), random: .system)
    var chunk = DataChunk(key: try header.key(under: keys.newest, context: []))
    let first = try chunk.seal(sample(DataChunk.byteCount).span.bytes, isLast: false)
    let end = try chunk.seal([UInt8]().span.bytes, isLast: true)
    let refusal = await code {
      guard var decryptor = try keys.decryptor(for: header, context: []) else { return }
      _ = try decryptor.update((first + end).span.bytes).byteCount
      _ = try decryptor.finish().byteCount
    }
    #expect(refusal == .damaged)
  }

  @Test func `a context of any allowed length works`() async throws {
    let vault = try await vault()
    for count in [0, 1, 1024] {
      let context = [UInt8](repeating: 7, count: count)
      let sealed = try await vault.encrypt(SecretBytes(copying: [1, 2, 3]), context: context)
      #expect(try await vault.decrypt(sealed, context: context).array() == [1, 2, 3], "\(count)")
    }
  }

  @Test
  func `foreign data, a locked vault, another version and a long context have separate errors`()
    async throws
  {
    let vault = try await vault()
    var sealed = try await vault.encrypt(SecretBytes(copying: [1, 2, 3]))
    let other = try await self.vault()
    #expect(await code { _ = try await other.decrypt(sealed) } == .keyMissing)
    await vault.lock()
    #expect(await code { _ = try await vault.decrypt(sealed) } == .locked)
    try await vault.unlock(with: credentials("password"))
    sealed[3] = 2
    #expect(await code { _ = try await vault.decrypt(sealed) } == .newerVersion)
    sealed[0] = 0
    #expect(await code { _ = try await vault.decrypt(sealed) } == .notSealedData)
    let context = [UInt8](repeating: 0, count: 1025)
    await expect(.invalidArgument) {
      _ = try await vault.encrypt(SecretBytes(copying: []), context: context)
    }
  }

  @Test func `data sealed before new credentials and new keys still opens`() async throws {
    let vault = try await FastTestVault.create(
      .messaging, in: InMemoryVaultStore(), credentials: .standard)
    let before = try await vault.encrypt(SecretBytes(copying: [1]))
    try await vault.changePassword(to: credentials("mine"))
    let after = try await vault.encrypt(SecretBytes(copying: [2]))
    try await vault.changePassword(to: credentials("another"))
    #expect(try await vault.decrypt(before).array() == [1])
    #expect(try await vault.decrypt(after).array() == [2])
    #expect(before[4..<12] != after[4..<12])  // the vault has had another key since it was secured
    let again = try await vault.encrypt(SecretBytes(copying: [3]))
    #expect(again[4..<12] == after[4..<12])
  }

  @Test(
    .enabled(if: JoseReader.isAvailable, JoseReader.skipReason),
    arguments: Exhaustive.sample(of: lengths, oneIn: 4))
  func `an independent program opens our sealed data, and we open its data`(byteCount: Int)
    async throws
  {
    let home = TemporaryHome()
    let vault = try await Vault.create(
      .messaging, in: home.store, credentials: credentials("correct horse"))
    let password = try home.write("password", "correct horse".utf8)
    let seen = try JoseReader.open(home.file(), by: ["--password": password])
    let text = try #require(seen["dataKeys"] as? String)
    let key = try home.write("key", Base64.bytes(text))
    let context = try home.write("context", [0, 255, 10])
    let data = sample(byteCount)
    let sealed = try await vault.encrypt(SecretBytes(copying: data), context: [0, 255, 10])
    #expect(try JoseReader.data("open", key: key, context: context, input: sealed) == data)
    let theirs = try JoseReader.data("seal", key: key, context: context, input: data)
    #expect(try await vault.decrypt(theirs, context: [0, 255, 10]).array() == data)
  }
}
