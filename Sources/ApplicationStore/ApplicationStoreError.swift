internal import AccessControl
internal import DataVault
internal import MessagingQueue
internal import VaultCrypto

/// The error of every call of this module.
///
/// It never carries a key, an auth key, a token, a password or the text of an SQL statement.
package struct ApplicationStoreError: Error, Sendable, CustomStringConvertible {
  /// The kind of failure, to be compared with the static members; a new version can add members.
  package struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The name of the member.
    package let description: String

    private init(_ name: String) { description = name }

    /// A name, a key, a lifetime or a limit breaks its rule.
    package static let invalidArgument = Code("invalidArgument")
    /// An application with this name exists.
    package static let alreadyExists = Code("alreadyExists")
    /// There is no application with this name or id.
    package static let unknownApplication = Code("unknownApplication")
    /// The application has no grant with this id.
    package static let unknownGrant = Code("unknownGrant")
    /// The application has no user with this name.
    package static let unknownUser = Code("unknownUser")
    /// The application has no webhook with this id.
    package static let unknownWebhook = Code("unknownWebhook")
    /// The name of a channel group, or of a channel in it, has a meaning of its own.
    package static let reservedName = Code("reservedName")
    /// There are as many applications as the limits allow.
    package static let tooManyApplications = Code("tooManyApplications")
    /// There are as many grants and revoked tokens as the limits allow.
    package static let tooManyGrants = Code("tooManyGrants")
    /// There are as many users, or roles of a user, as the limits allow.
    package static let tooManyUsers = Code("tooManyUsers")
    /// There are as many webhooks as the limits allow.
    package static let tooManyWebhooks = Code("tooManyWebhooks")
    /// The application has as many channel groups as the limits allow.
    package static let tooManyGroups = Code("tooManyGroups")
    /// The channel group, or all groups together, have as many channels as the limits allow.
    package static let tooManyChannels = Code("tooManyChannels")
    /// The vault has lost the key of the tables.
    package static let keyMissing = Code("keyMissing")
    /// The vault has another key than that of the tables.
    package static let wrongKey = Code("wrongKey")
    /// A row of the tables is not as this module wrote it.
    package static let damaged = Code("damaged")
    /// A newer version of this software has changed the tables.
    package static let newerVersion = Code("newerVersion")
    /// Another program's table has the name of one of these tables.
    package static let foreignTable = Code("foreignTable")
    /// The engine failed; ``ApplicationStoreError/underlying`` is its error.
    package static let engine = Code("engine")
    /// The vault failed; ``ApplicationStoreError/underlying`` is its error.
    package static let vault = Code("vault")
    /// OpenSSL failed.
    package static let libraryFailure = Code("libraryFailure")
  }

  /// The kind of failure.
  package let code: Code

  /// What failed and where, in lower case.
  package let message: String

  /// The next step, if there is one.
  package let hint: String?

  /// The error of the layer below, if one was the cause.
  package let underlying: (any Error)?

  init(
    _ code: Code, _ message: String, hint: String? = nil, underlying: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.underlying = underlying
  }

  /// The message, and the hint in brackets.
  package var description: String { hint.map { "\(message) (\($0))" } ?? message }
}

extension ApplicationStoreError {
  /// The error for a failure of a lower layer.
  ///
  /// - Parameters:
  ///   - operation: what was being done, such as `adding an application`.
  init(translating error: any Error, during operation: String) {
    switch error {
    case let error as ApplicationStoreError: self = error
    case let error as AccessError:
      self.init(.invalidArgument, error.message, hint: error.hint, underlying: error)
    case let error as VaultError:
      self.init(.vault, error.message, hint: error.hint, underlying: error)
    case let error as CryptoError:
      self.init(.libraryFailure, "\(operation): \(error)", underlying: error)
    default:
      let error = EngineError(translating: error, during: operation)
      self.init(.engine, error.message, hint: error.hint, underlying: error)
    }
  }

  static func unknownApplication(_ name: some CustomStringConvertible) -> Self {
    ApplicationStoreError(
      .unknownApplication, "there is no application '\(name)'",
      hint: "datavaultd app list shows all applications")
  }

  static func damaged(_ what: String, of application: some CustomStringConvertible) -> Self {
    ApplicationStoreError(
      .damaged, "\(what) of application '\(application)' is not as it was stored",
      hint: "restore the home from a backup, or remove the application")
  }
}

/// Runs `body` and throws its failure as an ``ApplicationStoreError``.
func translatingErrors<Result: ~Copyable>(
  during operation: String, _ body: () throws -> Result
) throws(ApplicationStoreError) -> Result {
  do {
    return try body()
  } catch {
    throw ApplicationStoreError(translating: error, during: operation)
  }
}
