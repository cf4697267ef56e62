internal import DataVault
internal import FileLayer
internal import SystemPackage
internal import VaultCrypto

/// The list of the vaults in a backup: `docs/explanation/vaulted-database.md`, "Backup".
///
/// It shows that a vault is missing, added or replaced. The messaging vault seals it, so only a holder of that
/// vault's secret can write it. A backup without a messaging vault has no list.
struct BackupList {
  private let home: DataVaultHome
  private static let context = Array("datavault backup".utf8)
  private static let maximumByteCount = 4 << 20

  /// The list of a backup, which has this home's layout.
  init(of home: DataVaultHome) { self.home = home }

  private var path: FilePath { home.path.appending("vaults.list") }

  /// Lists the vaults that are there; durable on return.
  ///
  /// - Parameter vault: the messaging vault, unlocked.
  func write(sealedBy vault: Vault) async throws {
    let text = SecretBytes(copying: Array(try await Self.lines(of: home).joined().utf8))
    try home.fileSystem.make(
      path, with: try await vault.encrypt(text, context: Self.context),
      owner: try home.fileSystem.ownerOfNewFile(in: home.path))
  }

  /// Throws `damaged` unless a home has exactly the listed vaults.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault of the backup, unlocked; nil if it has none.
  ///   - copy: the home with the vaults; nil for the backup itself.
  func verify(openedBy vault: Vault?, of copy: DataVaultHome? = nil) async throws {
    let sealed = try home.fileSystem.read(path, maximumByteCount: Self.maximumByteCount)
    guard let vault else {
      guard sealed == nil else { throw damage("vault '\(VaultID.messaging)' is missing") }
      return
    }
    guard let sealed else { throw damage("the file vaults.list is missing") }
    let text = try await vault.decrypt(sealed, context: Self.context)
    let listed = unsafe text.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    let lines = Set(listed.split(separator: "\n").map { "\($0)\n" })
    let found = try await Self.lines(of: copy ?? home)
    guard let line = lines.symmetricDifference(found).min() else { return }
    let file = line.drop { $0 != " " }.trimmingPrefix("  ").dropLast()
    throw damage("\(file) is missing, was added, or is not the vault that was backed up")
  }

  /// A line per vault, as sha256sum(1) writes it.
  private static func lines(of home: DataVaultHome) async throws -> [String] {
    try await Vault.list(in: home.store).map { id in
      let bytes = try home.store.read(id) ?? []
      return "\(try SHA256.digest(unsafe bytes.span.bytes).hexadecimal)  vaults/\(id).vault\n"
    }
  }

  private func damage(_ what: String) -> VaultedDatabaseError {
    VaultedDatabaseError(.damaged, what)
  }
}
