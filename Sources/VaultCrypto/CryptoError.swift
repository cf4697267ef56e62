internal import COpenSSL

/// The error of a cryptographic operation that gave no result.
///
/// It has no hint and no error beneath: the caller knows whose key and whose bytes they were.
public struct CryptoError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kinds of failure; later versions can add kinds.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name, stable for programs.
    public let description: String
    fileprivate let words: String

    /// A tag or an integrity check is wrong: the key is wrong, or bytes were changed.
    public static let authenticationFailed = Code(
      description: "authenticationFailed", words: "authentication failed")
    /// A length or a count is outside the range that the construction allows.
    public static let invalidArgument = Code(
      description: "invalidArgument", words: "invalid argument")
    /// OpenSSL failed or lacks the algorithm (a FIPS provider, no memory).
    public static let libraryFailure = Code(description: "libraryFailure", words: "OpenSSL failed")
  }

  /// The kind of failure.
  public let code: Code

  /// The construction that failed, such as `AES-256-GCM open`.
  public let operation: String

  /// Makes an error; it contains no data of the operation.
  public init(_ code: Code, in operation: String) {
    self.code = code
    self.operation = operation
  }

  /// The error for a failed OpenSSL call; it clears the thread's error queue.
  ///
  /// OpenSSL adds each failure to a queue of the thread. The next reader of that queue, such as a
  /// TLS connection on the same thread, would take a leftover entry for a failure of its own.
  static func failedCall(_ code: Code = .libraryFailure, in operation: String) -> CryptoError {
    ERR_clear_error()
    return CryptoError(code, in: operation)
  }

  /// The operation and its failure, without any data.
  public var description: String { "\(operation): \(code.words)" }
}
