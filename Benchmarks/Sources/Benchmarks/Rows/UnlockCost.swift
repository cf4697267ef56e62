import DataVault
import SystemPackage
import VaultCrypto
import VaultedDatabase

/// The cost of unlocking a vault, compared with PBKDF2 with the same iterations.
enum UnlockCost {
  static func measure(home: DataVaultHome, rounds: Int) async throws -> Comparison {
    let password = Array("correct horse battery staple".utf8)
    let credentials = Credentials(password: SecretBytes(copying: password))
    let vault = try await Vault.create(
      try VaultID("benchmark"), in: home.store, credentials: credentials)
    guard let iterationCount = try await vault.status().slots.compactMap(\.iterationCount).first
    else { throw BenchmarkError("the vault has no password slot") }
    let bare = BarePBKDF2(password: password, iterationCount: iterationCount)

    var comparison = Comparison(
      "unlock / bare PBKDF2", goal: .atMost(1.03), decidedByProcessorTime: true)
    // Each takes a tenth of a second: more pairs than elsewhere, with each side first in every
    // other pair.
    for round in 0..<3 * rounds {
      await vault.lock()
      let before = round.isMultiple(of: 2) ? nil : try Cost.of(bare.derive)
      let ours = try await Cost.of { try await vault.unlock(with: credentials) }
      let after = before == nil ? try Cost.of(bare.derive) : nil
      if let other = before ?? after { comparison.add(ours: ours, other: other) }
    }
    return comparison
  }
}
