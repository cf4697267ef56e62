import DataVault
import DataVaultTesting
import Foundation
import TestSupport
import Testing
import VaultCrypto

@Suite struct DamagedFileTests {
  let store = InMemoryVaultStore()

  /// The error of opening these bytes; nil when it succeeds.
  private func refusal(_ bytes: [UInt8]) async throws -> VaultError.Code? {
    store[.messaging] = bytes
    let vault = try await FastTestVault.get(.messaging, in: store)
    return await code { try await vault.unlock(with: credentials("password")) }
  }

  @Test func `a file built from docs/reference/vault-format.md alone opens`() async throws {
    store[.messaging] = try VaultFileBuilder().file()
    let vault = try await store.openVault(with: credentials("password"))
    #expect(try await vault.text("name") == "value")
  }

  @Test func `a file cut at any length is damaged`() async throws {
    let file = try VaultFileBuilder().file()
    for count in file.indices {
      #expect(try await refusal(Array(file[..<count])) == .damaged, "\(count) bytes")
    }
  }

  @Test func `any flipped bit is reported as damage, never as a wrong password`() async throws {
    let file = try VaultFileBuilder().file()
    for offset in file.indices {
      for bit in 0..<8 {
        var flipped = file
        flipped[offset] ^= 1 << bit
        #expect(try await refusal(flipped) == .damaged, "byte \(offset), bit \(bit)")
      }
    }
  }

  @Test func `any flipped bit under a recomputed digest is refused`() async throws {
    let file = try VaultFileBuilder().file()
    for offset in 0..<file.count - 56 {
      for bit in 0..<8 {
        var head = Array(file.dropLast(56))
        head[offset] ^= 1 << bit
        let code = try await refusal(VaultFileBuilder.seal(head))
        #expect(code == .damaged || code == .newerVersion, "byte \(offset), bit \(bit)")
      }
    }
  }

  @Test func `parts of two vaults under one password cannot be mixed`() async throws {
    let first = String(decoding: try VaultFileBuilder().file(), as: UTF8.self)
    let second = String(
      decoding: try VaultFileBuilder(p2s: Base64.url(Array(2...17))).file(), as: UTF8.self)
    func head(_ file: String) -> (key: Substring, contents: Substring) {
      let middle = file.range(of: ",\"contents\":")!
      return (file[..<middle.lowerBound], file[middle.lowerBound...].dropLast(56))
    }
    let mixed = VaultFileBuilder.seal(String(head(first).key + head(second).contents))
    #expect(try await refusal(mixed) == .damaged)
    let whole = VaultFileBuilder.seal(String(head(first).key + head(first).contents))
    #expect(try await refusal(whole) == nil)
  }

  @Test func `a file under another vault's name is refused`() async throws {
    #expect(try await refusal(VaultFileBuilder(id: "other").file()) == .damaged)
  }

  @Test(arguments: [0, 2, 99]) func `a file of another format version is reported as such`(
    version: Int
  ) async throws {
    var builder = VaultFileBuilder()
    builder.clear = #"{"version":\#(version),"anything":["else"]}"#
    builder.editKey = { _ in #"{"another":{"shape":null}}"# }
    #expect(try await refusal(builder.file()) == .newerVersion)
    store[.messaging] = try builder.file()
    let vault = try await FastTestVault.get(.messaging, in: store)
    #expect(await code { _ = try await vault.status() } == .newerVersion)
    #expect(await code { try await Vault.delete(.messaging, in: store) } == .newerVersion)
  }

  @Test func `huge and tiny iteration counts are refused before any derivation`() async throws {
    for count in ["10000001", "2147483647", "9007199254740991", "0"] {
      let code = try await refusal(VaultFileBuilder(statedIterationCount: count).file())
      #expect(code == .damaged, "\(count)")
    }
    // The minimum outside tests: 219,999 is refused without a derivation.
    store[.messaging] = try VaultFileBuilder(statedIterationCount: "219999").file()
    let vault = try await Vault.get(.messaging, in: store)
    #expect(await code { try await vault.unlock(with: credentials("password")) } == .damaged)
    // The calls that only read the file report the same error.
    #expect(await code { _ = try await vault.status() } == .damaged)
    #expect(await code { _ = try await vault.verify() } == .damaged)
    #expect(await VaultDoctor.examine(store).contains { $0.kind == "damaged" })
  }

  @Test func `parsing stops at the seventeenth slot`() async throws {
    let slots = Array(repeating: "1", count: 100_000).joined(separator: ",")
    var builder = VaultFileBuilder()
    builder.editKey = {
      guard let start = $0.range(of: "[") else { return $0 }
      return $0.replacingCharacters(in: start, with: "[\(slots),")
    }
    store[.messaging] = try builder.file()
    let vault = try await FastTestVault.get(.messaging, in: store)
    let error = await #expect(throws: VaultError.self) {
      _ = try await vault.status()
    }
    #expect(error?.message.hasSuffix("key slots: more than 16 elements") == true)
  }

  @Test func `random bytes are not a vault`() async throws {
    for count in [0, 1, 55, 56, 57, 58, 4096] {
      let bytes = RandomSource.system.bytes(count: count)
      #expect(try await refusal(bytes) == .damaged)
      #expect(try await refusal(VaultFileBuilder.seal(bytes)) == .damaged)
    }
  }

  @Test func `deep nesting is refused without deep recursion`() async throws {
    for depth in [9, 100, 1_000_000] {
      let nested = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
      let file = VaultFileBuilder.seal("{\"key\":\(nested),\"contents\":{},")
      #expect(try await refusal(file) == .damaged)
    }
  }
}
