import DataVault
import DataVaultTesting
import Foundation
import Glibc
import TestSupport
import Testing
import VaultCrypto

/// Tests of the real keyring of this user.
@Suite(.enabled(if: KernelSessions.areAvailable, "the kernel's keyring refuses us"))
struct KernelKeyringTests {
  let keyring = KernelKeyring()
  let name = "datavault-test:\(UUID().uuidString)"

  private func serial() throws -> Int32 {
    guard case .present(let serial) = try keyring.find(name) else { throw Absent() }
    return serial
  }

  private struct Absent: Error {}

  private func read(_ serial: Int32, byteCount: Int = 4) throws -> [UInt8]? {
    try keyring.read(serial, byteCount: byteCount)?.array()
  }

  @Test func `a stored secret is read back, and is gone after revoke()`() throws {
    defer { KernelSessions.revoke(name) }
    #expect(try keyring.find(name) == .absent)
    try keyring.store(secret("four"), as: name, wholeSeconds: 60)
    let serial = try serial()
    #expect(try read(serial) == Array("four".utf8))
    for byteCount in [0, 3, 5] {
      #expect(try read(serial, byteCount: byteCount) == nil, "\(byteCount) bytes")
    }
    try keyring.revoke(serial)
    #expect(try keyring.find(name) == .absent)
    #expect(try read(serial) == nil)
    try keyring.revoke(serial)
  }

  @Test func `the kernel expires a key after its timeout`() throws {
    defer { KernelSessions.revoke(name) }
    try keyring.store(secret("four"), as: name, wholeSeconds: 1)
    let serial = try serial()
    try eventually { try keyring.find(name) == .expired }
    #expect(try read(serial) == nil)
    // An expired key does not prevent the next one.
    try keyring.store(secret("five!"), as: name, wholeSeconds: 60)
    #expect(try read(self.serial(), byteCount: 5) == Array("five!".utf8))
  }

  @Test func `replacing a key makes the old serial unreadable`() throws {
    defer { KernelSessions.revoke(name) }
    try keyring.store(secret("old!"), as: name, wholeSeconds: 60)
    let old = try serial()
    try keyring.store(secret("new!"), as: name, wholeSeconds: 60)
    #expect(try serial() != old)
    #expect(try read(old) == nil)
  }

  @Test func `a key grants its owner all rights and its possessors none`() throws {
    defer { KernelSessions.revoke(name) }
    try keyring.store(secret("four"), as: name, wholeSeconds: 60)
    let row = try #require(
      ProcFile.text("/proc/keys").split(separator: "\n").first { $0.contains(name) })
    let columns = row.split(separator: " ")
    // The permissions of possessor, user, group and others; and the expiry, which is "perm" without
    // a timeout.
    #expect(columns[4] == "003f0000")
    #expect(columns[3] != "perm")
    #expect(columns[7] == "user")
  }

  @Test(.enabled(if: geteuid() == 0, "giving a key away needs root"))
  func `another user's key is no session, and is removed`() throws {
    defer { KernelSessions.revoke(name) }
    for isLookedUp in [true, false] {
      try keyring.store(secret("four"), as: name, wholeSeconds: 60)
      let serial = try serial()
      let given = try Program.run(
        "/usr/bin/python3",
        [
          "-c",
          """
          import ctypes, sys
          keys, serial = ctypes.CDLL("libkeyutils.so.1"), int(sys.argv[1])
          sys.exit(keys.keyctl_setperm(serial, 0x3f3f3f3f) or keys.keyctl_chown(serial, 65534, -1))
          """, "\(serial)",
        ])
      #expect(given.status == 0)
      if isLookedUp {
        #expect(try keyring.find(name) == .absent)
      } else {
        try keyring.revoke(serial)
      }
      #expect(try keyring.serials(withPrefix: name) == [])
    }
  }

  @Test func `serials(withPrefix:) finds keys by the prefix of their names`() throws {
    defer { for suffix in ["a", "b"] { KernelSessions.revoke("\(name):\(suffix)") } }
    for suffix in ["a", "b"] {
      try keyring.store(secret(suffix), as: "\(name):\(suffix)", wholeSeconds: 60)
    }
    #expect(try keyring.serials(withPrefix: "\(name):").count == 2)
    #expect(try keyring.serials(withPrefix: "\(name):b").count == 1)
    #expect(try keyring.serials(withPrefix: "\(name):c").isEmpty)
  }

  @Test func `a vault opens through the kernel's keyring and locks when its session ends`()
    async throws
  {
    let home = TemporaryHome()
    let vault = try await home.store.createVault(with: credentials("secret"))
    try await vault.setText("value", for: "name")
    try await vault.openSession(for: .seconds(3600))
    let found = try await FastTestVault.get(.messaging, in: home.store)
    #expect(try await found.unlockWithSession())
    #expect(try await found.text("name") == "value")
    #expect(try await VaultSession.end(.messaging, in: home.store))
    try await eventually { await found.isLocked }
    #expect(try await VaultSession.find(.messaging, in: home.store) == nil)
  }
}

private enum KernelSessions {
  /// Whether the kernel accepts sessions, tried once.
  static let areAvailable = (try? VaultSession.checkAvailability()) != nil

  static func revoke(_ name: String) {
    if case .present(let serial) = try? KernelKeyring().find(name) {
      try? KernelKeyring().revoke(serial)
    }
  }
}
