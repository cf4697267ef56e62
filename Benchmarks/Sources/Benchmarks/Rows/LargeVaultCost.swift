@_spi(Testing) import DataVault
import SystemPackage
import VaultCrypto
import VaultedDatabase

/// The cost of unlocking a vault of 10,000 items, beyond that of PBKDF2 with the same iterations.
enum LargeVaultCost {
  static let name = "unlock, 10,000 items: beyond bare PBKDF2"
  private static let itemCount = 10_000
  private static let valueByteCount = 100

  static func measure(home: DataVaultHome, rounds: Int) async throws -> ResultRow {
    let password = Array("correct horse battery staple".utf8)
    let credentials = Credentials(password: SecretBytes(copying: password))
    let vault = try await Vault.create(
      try VaultID("large"), in: home.store, credentials: credentials)
    let value = SecretBytes.random(byteCount: valueByteCount)
    try await vault.fill((0..<itemCount).map { "item number \($0)" }, with: value)
    guard try await vault.itemNames().count == itemCount,
      let iterationCount = try await vault.status().slots.compactMap(\.iterationCount).first
    else { throw BenchmarkError("the vault lacks items that were stored in it") }
    let bare = BarePBKDF2(password: password, iterationCount: iterationCount)

    var pairs: [(ours: Cost, other: Cost)] = []
    for round in 0...3 * rounds {
      await vault.lock()
      let before = round.isMultiple(of: 2) ? nil : try Cost.of(bare.derive)
      let ours = try await Cost.of { try await vault.unlock(with: credentials) }
      let after = before == nil ? try Cost.of(bare.derive) : nil
      // The first round fills the caches and does not count.
      if round > 0, let other = before ?? after { pairs.append((ours, other)) }
    }
    return ResultRow(beyond: name, pairs, goal: 50)
  }
}

/// The PBKDF2 call alone, with the parameters of a vault.
final class BarePBKDF2 {
  private let password: SecretBytes
  private let salt = [UInt8](repeating: 7, count: 35)
  private let iterationCount: Int

  init(password: [UInt8], iterationCount: Int) {
    self.password = SecretBytes(copying: password)
    self.iterationCount = iterationCount
  }

  func derive() throws {
    _ = try PBKDF2.sha512(
      password: password, salt: salt, iterationCount: iterationCount, byteCount: 32)
  }
}
