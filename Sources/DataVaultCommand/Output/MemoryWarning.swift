internal import VaultCrypto

/// What people are told once when the system does not let this process lock memory.
enum MemoryWarning {
  static func giveOnce() {
    guard LockedMemory.takeWarning() else { return }
    StandardError.warn(
      "secrets cannot be locked into memory and may reach the swap: raise RLIMIT_MEMLOCK (ulimit -l)"
    )
  }
}
