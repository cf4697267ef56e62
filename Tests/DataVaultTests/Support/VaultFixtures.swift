import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

/// The vault files in `Fixtures/vaults`, and the way each was made.
enum VaultFixtures {
  static let positiveDirectory = FilePath(Repository.path("Fixtures/vaults/positive"))
  static let negativeDirectory = FilePath(Repository.path("Fixtures/vaults/negative"))
  static let password = "correct horse battery staple"
  static let salt = "sea salt"
  static let databaseID: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]

  /// A vault that opens.
  struct Positive: Sendable, CustomTestStringConvertible {
    let name: String
    var isStandard = false
    var salt: String?
    /// The secrets that open the vault, each alone.
    var kinds: [VaultStatus.Slot.Kind] = [.password]
    let make: @Sendable (Vault) async throws -> Void

    var testDescription: String { name }

    func secret(_ kind: VaultStatus.Slot.Kind) throws -> VaultSecret {
      if kind == .password, isStandard { return .password(.standard) }
      return try VaultFixtures.secret(kind, salt: salt)
    }
  }

  static func secret(_ kind: VaultStatus.Slot.Kind, salt: String? = nil) throws -> VaultSecret {
    switch kind {
    case .password: .password(credentials(password, salt: salt))
    case .recoveryCode: .recoveryCode(try SlotSecrets.code())
    default: SlotSecrets.key()
    }
  }

  /// A secret that opens none of the fixtures.
  static func wrongSecret(_ kind: VaultStatus.Slot.Kind) throws -> VaultSecret {
    switch kind {
    case .password: .password(credentials("wrong"))
    case .recoveryCode:
      .recoveryCode(try RecoveryCode(bytes: SecretBytes(copying: Array(2...21))))
    default: SlotSecrets.key(Array(1...32))
    }
  }

  static let positives = [
    Positive(name: "standard-credentials", isStandard: true) { _ in },
    Positive(name: "password") { _ in },
    Positive(name: "password-and-salt", salt: salt) { _ in },
    Positive(name: "items", make: setItems),
    Positive(name: "policy") { try await $0.setPolicy(policy) },
    Positive(name: "database-creating") { vault in
      _ = try await vault.beginBinding(databaseID: databaseID).byteCount
    },
    Positive(name: "database-bound", make: bind),
    Positive(name: "database-pending-key") { vault in
      try await bind(vault)
      try await vault.storePendingKey(.random(byteCount: 32))
    },
    Positive(name: "recovery-code", kinds: [.recoveryCode]) { vault in
      try await vault.addRecoveryCode(SlotSecrets.code(), named: "paper")
      try await vault.removeSlot(named: "password")
    },
    Positive(name: "key-file", kinds: [.keyFile]) { vault in
      try await vault.addKeyFile(named: "usb", key: SecretBytes(copying: SlotSecrets.keyFile))
      try await vault.removeSlot(named: "password")
    },
    Positive(
      name: "every-kind-of-slot", salt: salt, kinds: [.password, .recoveryCode, .keyFile],
      make: addSlots),
    Positive(name: "rotated", kinds: [.password, .recoveryCode, .keyFile]) { vault in
      try await addSlots(vault)
      var secrets = VaultSecrets()
      for kind in [VaultStatus.Slot.Kind.password, .recoveryCode, .keyFile] {
        secrets.append(try secret(kind))
      }
      try await vault.rotate(keeping: secrets, dropping: ["safe"])
    },
  ]

  /// A policy with each number at its limit, as far as the password allows, and each rule that the
  /// password satisfies.
  static let policy = {
    var policy = VaultPolicy()
    policy.allowsStandardPassword = false
    policy.minimumLength = 28
    policy.requiresLower = true
    policy.requiresSpecial = true
    policy.minimumUniqueCharacters = 12
    policy.expirationDays = 36_500
    policy.lockTimeoutSeconds = 31_536_000
    policy.retryLimit = 1000
    return policy
  }()

  /// Two recovery codes, so that the reader must find the second.
  private static let addSlots: @Sendable (Vault) async throws -> Void = { vault in
    _ = try await vault.addRecoveryCode(named: "safe").text().byteCount
    try await vault.addRecoveryCode(SlotSecrets.code(), named: "paper")
    try await vault.addKeyFile(named: "usb", key: SecretBytes(copying: SlotSecrets.keyFile))
  }

  static let setItems: @Sendable (Vault) async throws -> Void = { vault in
    try await vault.setText("", for: "empty")
    try await vault.setText("quotes \" \\ / and \n\t\u{0} and ä😀", for: "escapes \" \\ \n ä😀")
    try await vault.set(SecretBytes(copying: Array(0...255)), kind: .binary, for: "every byte")
    try await vault.setText("longest name", for: String(repeating: "n", count: 255))
  }

  private static let bind: @Sendable (Vault) async throws -> Void = { vault in
    _ = try await vault.beginBinding(databaseID: databaseID).byteCount
    try await vault.completeBinding()
  }

  /// Files with one fault each, by the name of the fault.
  static func negatives() throws -> [String: [UInt8]] {
    var builder = VaultFileBuilder()
    builder.password = password
    builder.iterationCount = 220_000
    var files: [String: [UInt8]] = [:]
    for rule in BrokenRule.all where !BrokenRule.unkept.contains(rule.name) {
      builder.id = rule.name
      files[rule.name] = try rule.file(builder)
    }
    func add(_ name: String, _ edit: (inout VaultFileBuilder) -> Void) throws -> [UInt8] {
      var builder = builder
      builder.id = name
      edit(&builder)
      let file = try builder.file()
      files[name] = file
      return file
    }
    _ = try add("newer-version") {
      $0.clear = $0.clear.replacing(":1,\"vault\"", with: ":2,\"vault\"")
    }
    _ = try add("draft-version") {
      $0.clear = $0.clear.replacing(":1,\"vault\"", with: ":0,\"vault\"")
    }
    _ = try add("iterations-huge") { $0.statedIterationCount = "2147483647" }
    let otherKey = [UInt8](repeating: 0xC1, count: 32)
    _ = try add("password-slot-of-another-content-key") { $0.wrappedByPassword = otherKey }
    for (kind, name, key) in [
      ("recovery", "paper", SlotSecrets.codeKey), ("keyfile", "usb", SlotSecrets.keyFile),
    ] {
      let slot = try VaultFileBuilder.slot("\(kind):\(name)", key: key, wrapping: otherKey)
      _ = try add("\(kind)-slot-of-another-content-key") { $0.extraSlots = slot }
    }
    _ = try add("iterations-one-too-many") { $0.statedIterationCount = "10000001" }
    _ = try add("iterations-one-too-few") { $0.iterationCount = 219_999 }
    _ = try add("name-of-another-vault") { $0.id = "messaging" }
    files["nested-too-deep"] = VaultFileBuilder.seal(#"{"key":[[[[[[[[]]]]]]]],"contents":{},"#)
    files["truncated"] = Array(try add("truncated") { _ in }.dropLast(200))
    files["without-last-byte"] = try add("without-last-byte") { _ in }.dropLast()
    files["empty"] = []
    var flipped = try add("bit-flipped-in-the-tag") { _ in }
    flipped[flipped.count - 62] ^= 1
    files["bit-flipped-in-the-tag"] = flipped
    let other = try add("parts-of-two-vaults") { $0.p2s = Base64.url(Array(2...17)) }
    let whole = try add("parts-of-two-vaults") { _ in }
    let separator = Array(#","contents":"#.utf8)
    let cut = try #require(whole.firstRange(of: separator)).lowerBound
    let otherCut = try #require(other.firstRange(of: separator)).lowerBound
    files["parts-of-two-vaults"] = VaultFileBuilder.seal(
      Array(whole[..<cut] + other[otherCut...].dropLast(56)))
    return files
  }

  /// Negatives whose only fault is an invalid id, which is also their name.
  static let idsOfNoVault = [
    "Capital-in-the-id", "_underscore-first-in-the-id",
    "id-of-65-characters-" + String(repeating: "x", count: 45),
  ]

  /// The kind of secret that reaches the fault of a negative: the password, unless the fault is in
  /// another slot.
  static func kind(ofNegative name: String) -> VaultStatus.Slot.Kind {
    switch name {
    case "recovery-slot-of-another-content-key": .recoveryCode
    case "keyfile-slot-of-another-content-key": .keyFile
    default: .password
    }
  }

  static func names(in directory: FilePath) -> [String] {
    ((try? LinuxFileSystem().entries(of: directory)) ?? []).map { String($0.dropLast(6)) }
  }

  static func read(_ name: String, in directory: FilePath) throws -> [UInt8] {
    try #require(
      try LinuxFileSystem().read(directory.appending("\(name).vault"), maximumByteCount: 1 << 20))
  }
}
