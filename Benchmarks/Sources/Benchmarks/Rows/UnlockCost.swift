import DataVault
import SystemPackage
import VaultCrypto
import VaultedDatabase

/// Unlocking a vault, beside the bare PBKDF2 call with the same number of iterations.
enum UnlockCost {
  static func measure(home: DataVaultHome, rounds: Int) async throws -> Comparison {
    let password = Array("correct horse battery staple".utf8)
    let credentials = Credentials(password: SecretBytes(copying: password))
    let vault = try await Vault.create(
      try VaultID("benchmark"), in: home.store, credentials: credentials)
    guard let iterationCount = try await vault.status().slots.compactMap(\.iterationCount).first
    else { throw BenchmarkError("the vault has no password slot") }
    let bare = SecretBytes(copying: password)
    let salt = [UInt8](repeating: 7, count: 35)
    let deriveBare = {
      _ = try PBKDF2.sha512(
        password: bare, salt: salt, iterationCount: iterationCount, byteCount: 32)
    }

    var comparison = Comparison(
      "unlock / bare PBKDF2", goal: .atMost(1.05), decidedByProcessorTime: true)
    // A tenth of a second each: more pairs than elsewhere, and each side first in every other one.
    for round in 0..<3 * rounds {
      await vault.lock()
      let before = round.isMultiple(of: 2) ? nil : try Cost.of(deriveBare)
      let ours = try await Cost.of { try await vault.unlock(with: credentials) }
      let after = before == nil ? try Cost.of(deriveBare) : nil
      if let other = before ?? after { comparison.add(ours: ours, other: other) }
    }
    return comparison
  }
}
