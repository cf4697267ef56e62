import DataVault
import DataVaultTesting
import TestSupport
import Testing

extension Vault {
  func setText(_ text: String, for name: String) throws(VaultError) {
    try set(secret(text), kind: .string, for: name)
  }

  func changePolicy(_ change: @Sendable (inout VaultPolicy) -> Void) throws(VaultError) {
    var policy = try policy()
    change(&policy)
    try setPolicy(policy)
  }

  func text(_ name: String) throws(VaultError) -> String { try item(name).bytes.text() }
}

extension VaultStore {
  /// Creates a fast messaging vault and returns it unlocked.
  func createVault(
    with credentials: borrowing Credentials, policy: VaultPolicy? = nil
  ) async throws(VaultError) -> Vault {
    try await FastTestVault.create(
      .messaging, in: self, credentials: credentials, policy: policy)
  }

  /// Opens the messaging vault as another process would.
  func openVault(with credentials: borrowing Credentials) async throws(VaultError) -> Vault {
    let vault = try await FastTestVault.get(.messaging, in: self)
    try await vault.unlock(with: credentials)
    return vault
  }
}

/// The error code of an operation; nil when it succeeds.
func code(_ body: () async throws -> Void) async -> VaultError.Code? {
  do {
    try await body()
    return nil
  } catch let error as VaultError {
    return error.code
  } catch {
    Issue.record("not a VaultError: \(error)")
    return nil
  }
}

/// Expects that an operation fails with this code.
func expect(
  _ wanted: VaultError.Code, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () async throws -> Void
) async {
  let found = await code(body)
  #expect(found == wanted, sourceLocation: sourceLocation)
}

extension VaultPolicy {
  /// A policy that accepts a password of any length, with a change.
  static func lax(_ set: (inout VaultPolicy) -> Void) -> VaultPolicy {
    var policy = VaultPolicy()
    policy.minimumLength = 0
    set(&policy)
    return policy
  }
}
