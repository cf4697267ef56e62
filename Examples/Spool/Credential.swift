internal import DataVault
internal import Foundation
internal import VaultCrypto

/// A secret that systemd passes to the service as a file in $CREDENTIALS_DIRECTORY.
///
/// The file is in memory that is never swapped. See systemd.exec(5), `LoadCredentialEncrypted=`.
enum Credential {
  /// Reads a credential into locked memory; nil if the service was given none.
  static func read(_ name: String) async throws -> SecretBytes? {
    guard let directory = ProcessInfo.processInfo.environment["CREDENTIALS_DIRECTORY"],
      FileManager.default.fileExists(atPath: "\(directory)/\(name)")
    else { return nil }
    return try await SecretSource.credential(name).read()
  }
}
