internal import COpenSSL

/// Why a cryptographic operation gave no result.
public struct CryptoError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kinds of failure; new ones may be added.
  public struct Code: Sendable, Equatable {
    let name: String

    /// A tag or an integrity check does not fit: wrong key, or changed bytes.
    public static let authenticationFailed = Code(name: "authentication failed")
    /// A length or a count is outside what the construction allows.
    public static let invalidArgument = Code(name: "invalid argument")
    /// OpenSSL refused or lacks the algorithm (a FIPS provider, no memory).
    public static let libraryFailure = Code(name: "OpenSSL failed")
  }

  /// What kind of failure.
  public let code: Code

  /// The construction that failed, such as `AES-256-GCM open`.
  public let operation: String

  /// Makes an error; it carries no data of the operation.
  public init(_ code: Code, in operation: String) {
    self.code = code
    self.operation = operation
  }

  /// The error for a call that OpenSSL refused.
  ///
  /// OpenSSL notes each refusal in a queue of the thread; what is left there would be taken for a
  /// failure of the next one who asks, such as a TLS connection on the same thread.
  static func refused(_ code: Code, in operation: String) -> CryptoError {
    ERR_clear_error()
    return CryptoError(code, in: operation)
  }

  /// `operation: code`, without any data.
  public var description: String { "\(operation): \(code.name)" }
}
