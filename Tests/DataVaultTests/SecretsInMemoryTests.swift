import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import ProcessMemory
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

/// The passwords, keys and items in a process's memory, while a vault is open and afterwards.
@Suite struct SecretsInMemoryTests {
  /// The secrets of the test; each is computed byte for byte into locked memory, without a copy.
  private enum Sample: UInt32, CaseIterable {
    case password = 1
    case salt, otherPassword, item, otherItem, data, keyFile

    /// Printable bytes, as for passwords and strings.
    func secret() -> SecretBytes {
      SecretBytes(byteCount: self == .keyFile ? 32 : 48) { target in
        var state = rawValue &* 0x9E37_79B9
        for index in target.indices {
          state = state &* 1_664_525 &+ 1_013_904_223
          target[index] = UInt8(truncatingIfNeeded: 33 + (state >> 24) % 90)
        }
      }
    }

    var bytes: [UInt8] { secret().withUnsafeBytes { Array($0) } }

    static func credentials(_ password: Sample) -> Credentials {
      Credentials(password: password.secret(), salt: Sample.salt.secret())
    }
  }

  /// Every operation of a vault on a secret, with a memory image before the lock and one after it.
  private static func use(_ directory: String) async throws {
    let store = FileVaultStore(home: FilePath(directory))
    let vault = try await FastTestVault.create(
      .messaging, in: store, credentials: Sample.credentials(.password))
    try await vault.set(Sample.item.secret(), kind: .string, for: "text")
    try await vault.set(Sample.otherItem.secret(), kind: .binary, for: "bytes")
    _ = try await vault.item("text").bytes.byteCount
    _ = try await vault.item("bytes", kind: .binary).bytes.byteCount
    let sealed = try await vault.encrypt(Sample.data.secret(), context: [1])
    _ = try await vault.decrypt(sealed, context: [1]).byteCount
    try await vault.changePassword(to: Sample.credentials(.otherPassword))
    try await vault.addKeyFile(named: "key", key: Sample.keyFile.secret())
    _ = await code { try await vault.unlock(with: Sample.credentials(.password)) }
    await vault.lock()
    try await vault.unlock(with: .keyFile(Sample.keyFile.secret()))
    try await vault.unlock(with: Sample.credentials(.otherPassword))
    _ = try await vault.item("text").bytes.byteCount
    try MemoryImage.write(to: directory + "/open")
    await vault.lock()
  }

  private static func images(
    _ leaks: Bool
  ) async throws -> (open: MemoryImage, locked: MemoryImage) {
    let folder = ScratchFolder()
    let directory = folder.path.string
    defer { withExtendedLifetime(folder) {} }
    await #expect(processExitsWith: .success) {
      [directory = directory as String, leaks = leaks as Bool] in
      try await SecretsInMemoryTests.use(directory)
      let leaked = leaks ? Sample.allCases.map(\.bytes) : []
      try MemoryImage.write(to: directory + "/locked")
      withExtendedLifetime(leaked) {}
    }
    return (
      try MemoryImage(readingFrom: directory + "/open"),
      try MemoryImage(readingFrom: directory + "/locked")
    )
  }

  @Test func `a process has no secrets of a vault in memory after the vault is locked`()
    async throws
  {
    let (open, locked) = try await Self.images(false)
    // The control: the contents are in memory while the vault is open, in the form of its JSON.
    #expect(open.contains(Sample.item.bytes))
    for sample in [Sample.password, .otherPassword, .salt, .keyFile, .data] {
      #expect(!open.contains(sample.bytes), "\(sample), while open")
    }
    #expect(locked.byteCount > 0)
    for sample in Sample.allCases {
      #expect(!locked.contains(sample.bytes), "\(sample)")
      let text = Array(Base64.url(sample.bytes).utf8)
      #expect(!locked.contains(text), "\(sample) in base64url")
    }
    #expect(locked.expandedKeys().isEmpty)
  }

  @Test func `the search finds the secrets of a process that keeps copies`() async throws {
    let (_, locked) = try await Self.images(true)
    for sample in Sample.allCases { #expect(locked.contains(sample.bytes), "\(sample)") }
  }
}
