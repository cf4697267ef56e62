extension Vault {
  /// What the unlocked vault demands of passwords, how long it stays open, and what wrong attempts
  /// lead to.
  ///
  /// - Throws: `locked`; what reading throws.
  public func policy() throws(VaultError) -> VaultPolicy {
    try withContents { open in
      var policy = open.contents.policy
      policy.retryLimit = open.clear.retryLimit
      return policy
    }
  }

  /// Sets the policy of the unlocked vault; durable on return.
  ///
  /// The password in place is not looked at: if it breaks a new rule, or has expired by it, the next
  /// unlock says so, and ``changePassword(from:to:)`` takes it. A lock timeout that differs from the
  /// one before counts from now; in other processes, from when they notice.
  ///
  /// - Throws: `locked`, `invalidArgument` for a number out of its bounds, `writeFailed`; what
  ///   reading throws.
  public func setPolicy(_ policy: VaultPolicy) throws(VaultError) {
    try policy.requireValid()
    try change { draft in
      draft.contents.policy = policy
      draft.clear.retryLimit = policy.retryLimit
    }
  }
}

extension VaultDraft {
  /// - Throws: for a new password that breaks the vault's policy, the rule's own error.
  borrowing func requireAllowed(
    _ new: borrowing Credentials, of id: VaultID
  ) throws(VaultError) {
    try contents.policy.check(new, for: .setting, of: id)
  }
}
