import DataVault
import DataVaultTesting
import Glibc
import SystemPackage
import Testing

@Suite struct StoreConformanceTests {
  @Test(arguments: VaultStoreConformance.Check.allCases)
  func `FileVaultStore passes the conformance check`(check: VaultStoreConformance.Check)
    async throws
  {
    let home = TemporaryHome()
    let file = home.file(try VaultID("conformance")).string
    let aside = file + ".aside"
    let conformance = VaultStoreConformance(obstacles: [
      VaultStoreConformance.Obstacle(.permissionsTooOpen) {
        chmod(file, 0o644)
      } clear: {
        chmod(file, 0o600)
      },
      VaultStoreConformance.Obstacle(.permissionsTooOpen) {
        chmod(home.directory.string, 0o770)
      } clear: {
        chmod(home.directory.string, 0o700)
      },
      VaultStoreConformance.Obstacle(.unreadable) {
        rename(file, aside)
        symlink(aside, file)
      } clear: {
        unlink(file)
        rename(aside, file)
      },
      VaultStoreConformance.Obstacle(.storeUnavailable) {
        rename(home.directory.string, home.directory.string + ".aside")
        close(open(home.directory.string, O_CREAT | O_WRONLY, 0o600))
      } clear: {
        unlink(home.directory.string)
        rename(home.directory.string + ".aside", home.directory.string)
      },
    ]) { home.store }
    try await conformance.run(check)
  }

  @Test(arguments: VaultStoreConformance.Check.allCases)
  func `InMemoryVaultStore passes the conformance check`(check: VaultStoreConformance.Check)
    async throws
  {
    let store = InMemoryVaultStore()
    let obstacles = [VaultError.Code.storeLocked, .storeUnavailable, .unreadable].map { code in
      VaultStoreConformance.Obstacle(code) {
        store.failure = VaultError(code, "on purpose")
      } clear: {
        store.failure = nil
      }
    }
    try await VaultStoreConformance(obstacles: obstacles) { store }.run(check)
  }

  /// The check for a requirement detects a store that breaks it.
  @Test(arguments: FaultyStore.Fault.allCases)
  func `the conformance checks detect each faulty store`(fault: FaultyStore.Fault) async throws {
    let store = FaultyStore(fault)
    let obstacle = VaultStoreConformance.Obstacle(.storeLocked) {
      store.isLocked = true
    } clear: {
      store.isLocked = false
    }
    let conformance = VaultStoreConformance(obstacles: [obstacle], largeByteCount: 1 << 16) {
      store
    }
    var caught: [VaultStoreConformance.Check] = []
    for check in VaultStoreConformance.Check.allCases {
      store.clear()
      do {
        try await conformance.run(check)
      } catch is VaultStoreConformance.Violation {
        caught.append(check)
      }
    }
    #expect(caught.contains(fault.check), "\(caught)")
  }
}
