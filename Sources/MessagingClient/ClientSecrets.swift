public import DataVault
internal import Foundation
public import MessageCipher
internal import VaultCrypto

/// What one vault keeps for a client: a cipher key, an auth key, credentials, and who the client is.
///
/// ```swift
/// let secrets = try await ClientSecrets(vault)
/// var configuration = PubNubConfiguration(
///   server: server, subscribeKey: "sub", publishKey: "pub", secrets: secrets)
/// ```
///
/// Items that the vault does not have are nil here.
public struct ClientSecrets: Sendable {
  /// The names of the items.
  public struct Names: Sendable {
    /// Binary, 32 bytes: the key of a ``MessageCipher/MessageCipher``.
    ///
    /// Default: `message-key`.
    public var cipherKey = "message-key"
    /// A string: an auth key or a token.
    ///
    /// Default: `auth-key`.
    public var authKey = "auth-key"
    /// A string: the user's name for logins.
    ///
    /// Default: `login-user`.
    public var loginUser = "login-user"
    /// A string: the user's password for logins.
    ///
    /// Default: `login-password`.
    public var loginPassword = "login-password"
    /// A string: who the client is without a login, the same at each start.
    ///
    /// Default: `client-id`.
    public var clientID = "client-id"

    /// Makes the default names.
    public init() {}
  }

  /// Encrypts and decrypts messages.
  public let cipher: MessageCipher?
  /// An auth key or a token.
  public let authKey: SharedSecret?
  /// The user and the password for challenges.
  public let loginHandler: (any LoginHandler)?
  /// Who the client is: the user of the login, otherwise a random id that the vault keeps from the first time on.
  public let clientID: String

  /// Reads the items of an unlocked vault, and makes the client's id if there is none.
  ///
  /// The id is durable on return.
  ///
  /// - Throws: ``VaultError``, such as `locked`; ``MessageCipherError`` for a key of another length.
  public init(_ vault: Vault, _ names: Names = Names()) async throws {
    if let key = try await Self.secret(names.cipherKey, .binary, vault) {
      cipher = try key.withSecret { (key) throws(MessageCipherError) in try MessageCipher(key: key)
      }
    } else {
      cipher = nil
    }
    authKey = try await Self.secret(names.authKey, .string, vault)
    let user = try await Self.secret(names.loginUser, .string, vault)
    let password = try await Self.secret(names.loginPassword, .string, vault)
    if let user, let password {
      loginHandler = ClosureLoginHandler { request in
        // The vault has no other password.
        guard request.refusalCount == 0 else { return nil }
        return LoginCredentials(
          user: user.withSecret { $0.copy() }, password: password.withSecret { $0.copy() })
      }
    } else {
      loginHandler = nil
    }
    // The server lets a user who has logged in act under no other id.
    let known =
      if loginHandler == nil { try await Self.secret(names.clientID, .string, vault) } else { user }
    if let known {
      clientID = known.withBytes { bytes in
        String(decoding: (0..<bytes.byteCount).map { bytes[$0] }, as: UTF8.self)
      }
    } else {
      clientID = UUID().uuidString.lowercased()
      try await vault.set(
        SecretBytes(copying: Array(clientID.utf8)), kind: .string, for: names.clientID)
    }
  }

  private static func secret(
    _ name: String, _ kind: VaultItem.Kind, _ vault: Vault
  ) async throws(VaultError) -> SharedSecret? {
    do throws(VaultError) {
      return SharedSecret(try await vault.item(name, kind: kind).bytes.copy())
    } catch {
      guard error.code == .itemNotFound else { throw error }
      return nil
    }
  }

  /// Answers challenges with the vault's user and password; nil if it has none.
  public var challenges: ClientChallenges? {
    loginHandler.map { ClientChallenges(BasicChallengeHandler($0, answersApplicationBasic: true)) }
  }
}

extension PubNubConfiguration {
  /// Makes a configuration with what a vault keeps.
  public init(
    server: String, subscribeKey: String, publishKey: String? = nil, secrets: ClientSecrets
  ) {
    self.init(
      server: server, subscribeKey: subscribeKey, publishKey: publishKey, userID: secrets.clientID)
    authKey = secrets.authKey
    cipher = secrets.cipher
    challenges = secrets.challenges
  }
}
