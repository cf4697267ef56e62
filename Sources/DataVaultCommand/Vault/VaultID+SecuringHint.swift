internal import DataVault

extension VaultID {
  /// What gives the vault a password of its own.
  var securingHint: String {
    self == .messaging ? "run datavault secure" : "run datavault change-password \(self)"
  }
}
