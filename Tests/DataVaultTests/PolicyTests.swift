import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import TestSupport
import Testing
import VaultCrypto

/// A rule, a password that satisfies it and a password that breaks only this rule.
struct PasswordRule: Sendable, CustomTestStringConvertible {
  let code: VaultError.Code
  private let keptBytes: [UInt8]
  private let brokenBytes: [UInt8]
  private let set: @Sendable (inout VaultPolicy) -> Void

  var testDescription: String { "\(code): \(keptBytes), not \(brokenBytes)" }
  var kept: Credentials { Self.credentials(keptBytes) }
  var broken: Credentials { Self.credentials(brokenBytes) }

  init(
    _ code: VaultError.Code, keptBy kept: [UInt8], brokenBy broken: [UInt8],
    _ set: @escaping @Sendable (inout VaultPolicy) -> Void
  ) {
    (self.code, keptBytes, brokenBytes, self.set) = (code, kept, broken, set)
  }

  init(
    _ code: VaultError.Code, keptBy kept: String, brokenBy broken: String,
    _ set: @escaping @Sendable (inout VaultPolicy) -> Void
  ) {
    self.init(code, keptBy: Array(kept.utf8), brokenBy: Array(broken.utf8), set)
  }

  var policy: VaultPolicy { .lax(set) }

  static func credentials(_ password: [UInt8]) -> Credentials {
    Credentials(password: SecretBytes(copying: password))
  }

  static let all = [
    PasswordRule(.passwordTooShort, keptBy: "12345678", brokenBy: "1234567") {
      $0.minimumLength = 8
    },
    // The unit is the Unicode scalar, neither the byte nor the visible character.
    PasswordRule(.passwordTooShort, keptBy: "äöü€日本語😀", brokenBy: "äöü€日本😀") {
      $0.minimumLength = 8
    },
    PasswordRule(.passwordTooShort, keptBy: "e\u{301}e\u{301}", brokenBy: "\u{E9}\u{E9}") {
      $0.minimumLength = 4
    },
    // In a password that is not UTF-8, the unit is the byte.
    PasswordRule(
      .passwordTooShort, keptBy: [0xC3, 0xA4, 0xC3, 0xFF], brokenBy: [0xC3, 0xA4, 0xFF]
    ) { $0.minimumLength = 4 },
    PasswordRule(.needsDigit, keptBy: "pass1", brokenBy: "passⅧ½") { $0.requiresDigit = true },
    PasswordRule(.needsDigit, keptBy: "\u{663}", brokenBy: "x") { $0.requiresDigit = true },
    PasswordRule(.needsUpper, keptBy: "passÄ", brokenBy: "passä1 ") { $0.requiresUpper = true },
    PasswordRule(.needsLower, keptBy: "PASSä", brokenBy: "PASSÄ1 ") { $0.requiresLower = true },
    PasswordRule(.needsSpecial, keptBy: "pass word", brokenBy: "passé日1") {
      $0.requiresSpecial = true
    },
    PasswordRule(.needsSpecial, keptBy: [0xFF], brokenBy: Array("e\u{301}".utf8)) {
      $0.requiresSpecial = true
    },
    // A byte that is not part of UTF-8 text is not a letter of Latin-1 either.
    PasswordRule(.needsLower, keptBy: [0xFF, 0x61], brokenBy: [0xE4, 0xFF]) {
      $0.requiresLower = true
    },
    PasswordRule(.tooFewUniqueCharacters, keptBy: "aaaabcä", brokenBy: "aabbccaabbcc") {
      $0.minimumUniqueCharacters = 4
    },
    PasswordRule(.tooFewUniqueCharacters, keptBy: [1, 2, 0xFF], brokenBy: [0xFE, 0xFF, 0xFF]) {
      $0.minimumUniqueCharacters = 3
    },
  ]
}

@Suite struct PolicyTests {
  let vaults = ClockedVaults()

  @Test func `a new vault has the defaults`() async throws {
    let policy = try await vaults.make("long enough", policy: VaultPolicy()).policy()
    #expect(policy == VaultPolicy())
    #expect(policy.allowsStandardPassword)
    #expect(policy.minimumLength == 8)
    #expect(!policy.requiresDigit && !policy.requiresUpper)
    #expect(!policy.requiresLower && !policy.requiresSpecial)
    #expect(policy.minimumUniqueCharacters == 0)
    #expect(policy.expirationDays == 0)
    #expect(policy.lockTimeoutSeconds == 0)
    #expect(policy.retryLimit == 0)
  }

  @Test func `every field of a policy survives every kind of change`() async throws {
    let vault = try await vaults.make()
    var policy = VaultPolicy()
    policy.allowsStandardPassword = false
    policy.minimumLength = 9
    policy.requiresDigit = true
    policy.requiresUpper = true
    policy.requiresLower = true
    policy.requiresSpecial = true
    policy.minimumUniqueCharacters = 5
    policy.expirationDays = 90
    policy.lockTimeoutSeconds = 600
    policy.retryLimit = 10
    try await vault.setPolicy(policy)
    try await vault.setText("x", for: "y")
    try await vault.changePassword(to: credentials("Correct-Horse-1"))
    let found = try await vaults.found()
    try await found.unlock(with: credentials("Correct-Horse-1"))
    #expect(try await found.policy() == policy)
    #expect(try await found.status().retryLimit == 10)
  }

  @Test func `a locked vault neither returns nor accepts a policy`() async throws {
    let vault = try await vaults.make()
    await vault.lock()
    #expect(await code { _ = try await vault.policy() } == .locked)
    #expect(await code { try await vault.setPolicy(VaultPolicy()) } == .locked)
  }

  @Test(arguments: [
    policyField(\.minimumLength, 1024), policyField(\.minimumUniqueCharacters, 256),
    policyField(\.expirationDays, 36_500), policyField(\.lockTimeoutSeconds, 31_536_000),
    policyField(\.retryLimit, 1000),
  ])
  func `a policy with a number out of range is refused`(
    field: @Sendable (Int) -> VaultPolicy, maximum: Int
  ) async throws {
    let vault = try await vaults.make()
    try await vault.setPolicy(field(maximum))
    for number in [-1, maximum + 1, .max, .min] {
      #expect(
        await code { try await vault.setPolicy(field(number)) } == .invalidArgument, "\(number)")
    }
    #expect(try await vault.policy() == field(maximum))
    await expect(.invalidArgument) {
      _ = try await FastTestVault.create(
        VaultID("b"), in: vaults.store, credentials: credentials("x"), policy: field(-1))
    }
  }

  @Test func `a file whose policy is out of bounds is damaged`() async throws {
    for (old, new) in [
      (#""minimumLength":8"#, #""minimumLength":1025"#),
      (#""expirationDays":0"#, #""expirationDays":9007199254740991"#),
    ] {
      var builder = VaultFileBuilder()
      builder.policy = builder.policy.replacing(old, with: new)
      let store = InMemoryVaultStore()
      store[.messaging] = try builder.file()
      let vault = try await FastTestVault.get(.messaging, in: store)
      #expect(await code { try await vault.unlock(with: credentials("password")) } == .damaged)
    }
  }

  @Test(arguments: PasswordRule.all)
  func `a rule applies whenever a password is set`(rule: PasswordRule) async throws {
    await expect(rule.code) {
      _ = try await vaults.store.createVault(with: rule.broken, policy: rule.policy)
    }
    let vault = try await vaults.store.createVault(with: rule.kept, policy: rule.policy)
    await expect(rule.code) { try await vault.changePassword(to: rule.broken) }
    await expect(rule.code) { try await vault.changePassword(from: rule.kept, to: rule.broken) }
    try await vault.changePassword(to: rule.kept)
    try await vaults.found().unlock(with: rule.kept)
  }

  @Test(arguments: PasswordRule.all)
  func `a rule set later refuses the current password, which can still be changed`(
    rule: PasswordRule
  ) async throws {
    let vault = try await vaults.store.createVault(with: rule.broken)
    try await vault.setPolicy(rule.policy)
    let found = try await vaults.found()
    await expect(rule.code) { try await found.unlock(with: rule.broken) }
    #expect(await found.isLocked)
    #expect(try await found.status().failedAttemptCount == 0)
    try await found.changePassword(from: rule.broken, to: rule.kept)
    try await found.unlock(with: rule.kept)
  }

  @Test func `a refused password leaves the vault unchanged`() async throws {
    let store = InMemoryVaultStore()
    let vault = try await store.createVault(with: .standard, policy: VaultPolicy())
    let before = store[.messaging]
    #expect(await code { try await vault.secure(to: credentials("short")) } == .passwordTooShort)
    #expect(store[.messaging] == before)
    try await vault.secure(to: credentials("long enough"))
  }

  @Test func `allowed standard credentials are exempt from the rules for characters`()
    async throws
  {
    var strict = VaultPolicy()
    strict.minimumLength = 1024
    strict.requiresUpper = true
    strict.requiresDigit = true
    strict.minimumUniqueCharacters = 256
    let vault = try await vaults.store.createVault(with: .standard, policy: strict)
    await vault.lock()
    try await vault.unlock(with: .standard)
    await expect(.passwordTooShort) {
      try await vault.changePassword(to: credentials("datavault-standard-password"))
    }
  }

  @Test func `forbidden standard credentials cannot be set or used, but can be replaced`()
    async throws
  {
    let demanding = VaultPolicy.lax { $0.allowsStandardPassword = false }
    await expect(.passwordRequired) {
      _ = try await vaults.store.createVault(with: .standard, policy: demanding)
    }
    let vault = try await vaults.store.createVault(with: .standard)
    try await vault.setPolicy(demanding)
    let found = try await vaults.found()
    #expect(await code { try await found.unlock(with: .standard) } == .passwordRequired)
    try await found.changePassword(from: .standard, to: credentials("mine"))
    try await found.unlock(with: credentials("mine"))
    #expect(await code { try await found.changePassword(to: .standard) } == .passwordRequired)
  }

  @Test func `a password expires after its days and can then be changed`() async throws {
    let vault = try await vaults.make(policy: .lax { $0.expirationDays = 30 })
    await vault.lock()
    vaults.advance(by: .seconds(30 * 86_400 - 1))
    try await vault.unlock(with: credentials("right"))
    await vault.lock()
    vaults.advance(by: .seconds(1))
    let error = await #expect(throws: VaultError.self) {
      try await vault.unlock(with: credentials("right"))
    }
    #expect(error?.code == .passwordExpired)
    #expect(error?.hint?.contains("change-password") == true)
    #expect(await vault.isLocked)
    // A wrong password is wrong, not expired.
    #expect(await code { try await vault.unlock(with: credentials("wrong")) } == .wrongPassword)
    try await vault.changePassword(from: credentials("right"), to: credentials("fresh"))
    try await vault.unlock(with: credentials("fresh"))
    vaults.advance(by: .seconds(30 * 86_400))
    // An open vault stays open: only an unlock checks the password's age.
    try await vault.setText("1", for: "a")
    try await vault.changePassword(to: credentials("fresher"))
    try await vault.unlock(with: credentials("fresher"))
  }

  @Test func `other changes do not affect the age of a password`() async throws {
    let vault = try await vaults.make(policy: .lax { $0.expirationDays = 1 })
    vaults.advance(by: .seconds(86_399))
    try await vault.setText("1", for: "a")
    try await vault.setPolicy(.lax { $0.expirationDays = 1 })
    vaults.advance(by: .seconds(1))
    #expect(await code { try await vault.unlock(with: credentials("right")) } == .passwordExpired)
  }

  @Test func `a long password with few different characters is checked quickly`() async throws {
    let rules = VaultPolicy.lax { $0.minimumUniqueCharacters = 256 }
    let long = [UInt8](repeating: 0x61, count: 1 << 20)
    await expect(.tooFewUniqueCharacters) {
      _ = try await vaults.store.createVault(with: PasswordRule.credentials(long), policy: rules)
    }
  }
}

/// A field of a policy as a test's argument, with its maximum.
private func policyField(
  _ field: any WritableKeyPath<VaultPolicy, Int> & Sendable, _ maximum: Int
) -> (@Sendable (Int) -> VaultPolicy, Int) {
  ({ number in .lax { $0[keyPath: field] = number } }, maximum)
}
