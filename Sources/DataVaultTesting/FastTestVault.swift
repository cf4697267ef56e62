public import DataVault

/// Vaults for tests with so few iterations that a password costs no time.
///
/// Only this type can open them again, because all other code refuses so few iterations.
public enum FastTestVault {
  /// As `Vault.create`, with 10 iterations.
  ///
  /// - Parameter policy: by default one that accepts a password of any length.
  public static func create(
    _ id: VaultID, in store: any VaultStore, credentials: borrowing Credentials,
    policy: VaultPolicy? = nil
  ) async throws(VaultError) -> Vault {
    try await Vault.create(
      id, in: store, credentials: credentials, policy: policy, parameters: .cheap)
  }

  /// As `Vault.get`, for vaults with any number of iterations.
  public static func get(
    _ id: VaultID, in store: any VaultStore
  ) async throws(VaultError) -> Vault {
    try await Vault.get(id, in: store, parameters: .cheap)
  }
}

extension VaultParameters {
  /// Parameters with ten iterations, no minimum, and passwords of any length.
  package static var cheap: VaultParameters {
    var parameters = VaultParameters()
    parameters.iterationCount = 10
    parameters.minimumIterationCount = 1
    parameters.newPolicy.minimumLength = 0
    return parameters
  }
}
