import CReleasedMemory
import DataVault
import DataVaultTesting
import Glibc
import VaultCrypto

/// Uses secrets and a vault in every way, and checks each locked mapping when the kernel gets it
/// back.
///
/// `make nightly PART=wipe` builds it for release, to test what the optimizer leaves of the wiping. A
/// replacement for munmap(2) (`CReleasedMemory`) does the check, so no code of the library takes
/// part in it.
@main enum MemoryWipeTest {
  static func main() async throws {
    let before = released_memory_counts()
    guard catchesControl() else { fail("the control, memory that was not wiped, was not detected") }
    let start = released_memory_counts()

    for byteCount in [0, 1, 32, 4096, 4097, 100_000] { useSecret(byteCount) }
    failToFill()
    let afterSecrets = released_memory_counts()
    guard afterSecrets.givenBack - start.givenBack >= 8, afterSecrets.held == before.held else {
      fail("secrets were not released: the test is not conclusive")
    }

    try await useVault()
    let end = released_memory_counts()
    let count = end.givenBack - start.givenBack
    let unwiped = end.unwiped - start.unwiped
    guard end.forgotten == 0, end.held == before.held, count > 100 else {
      fail("\(end.held) secrets were not released, \(count) were: the test is not conclusive")
    }
    print(
      "wiping, \(build) build: \(count) mappings of secrets given back,",
      "not wiped: \(unwiped); a control was caught")
    if unwiped > 0 { fail("secrets were released to the system without wiping") }
  }

  private static var build: String {
    #if DEBUG
      "debug"
    #else
      "release"
    #endif
  }

  private static func fail(_ message: String) -> Never {
    print("wiping: \(message)")
    exit(1)
  }

  /// Releases a locked page that contains data.
  private static func catchesControl() -> Bool {
    let before = released_memory_counts().unwiped
    let page = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let page, page != MAP_FAILED else { return false }
    mlock(page, 4096)
    page.storeBytes(of: 0xA5, toByteOffset: 4095, as: UInt8.self)
    munmap(page, 4096)
    return released_memory_counts().unwiped == before + 1
  }

  private static func useSecret(_ byteCount: Int) {
    let secret = SecretBytes(byteCount: byteCount) { memory in
      memory.initializeMemory(as: UInt8.self, repeating: 0xA5)
    }
    _ = secret.copy()
  }

  private static func failToFill() {
    struct Refusal: Error {}
    _ = try? SecretBytes(byteCount: 32) { memory throws(Refusal) in
      memory.initializeMemory(as: UInt8.self, repeating: 0xA5)
      throw Refusal()
    }.byteCount
  }

  // MARK: A vault

  private static func secret(_ text: String) -> SecretBytes {
    SecretBytes(copying: Array(text.utf8))
  }

  private static func credentials(_ password: String) -> Credentials {
    Credentials(password: secret(password), salt: secret("salt"))
  }

  /// Every operation of a vault on secrets, including refused ones.
  private static func useVault() async throws {
    let store = InMemoryVaultStore()
    let vault = try await FastTestVault.create(
      .messaging, in: store, credentials: credentials("first"))
    try await vault.set(secret("text"), kind: .string, for: "text")
    try await vault.set(secret("bytes"), kind: .binary, for: "bytes")
    _ = try await vault.item("text").bytes.byteCount
    let sealed = try await vault.encrypt(secret("data"), context: [1])
    _ = try await vault.decrypt(sealed, context: [1]).byteCount
    _ = try? await vault.decrypt(sealed, context: [2]).byteCount
    try await vault.changePassword(to: credentials("second"))
    try await vault.addKeyFile(named: "key", key: secret(String(repeating: "k", count: 32)))
    let code = try await vault.addRecoveryCode(named: "paper")
    await vault.lock()
    try? await vault.unlock(with: credentials("first"))
    try await vault.unlock(with: .recoveryCode(code))
    await vault.lock()
    try await vault.unlock(with: credentials("second"))
    var kept = VaultSecrets()
    kept.append(.password(credentials("second")))
    try await vault.rotate(keeping: kept, dropping: ["key", "paper"])
    try await vault.removeItem("text")
    await vault.lock()
  }
}

extension released_memory {
  fileprivate var givenBack: Int { wiped + unwiped }
}
