internal import StrictJSON
internal import VaultCrypto

/// The error of an operation of ``MessageCipher``.
///
/// It contains no key and no plaintext. All failures of decryption are one error with one text.
public struct MessageCipherError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; later versions can add kinds.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name, stable for programs.
    public let description: String

    /// An argument breaks a rule; the message says which.
    public static let invalidArgument = Code(description: "invalidArgument")
    /// The text is not JSON.
    public static let notJSON = Code(description: "notJSON")
    /// The object has no member with this name.
    public static let memberMissing = Code(description: "memberMissing")
    /// A message or a plaintext is larger than the limit.
    public static let tooLarge = Code(description: "tooLarge")
    /// The message is not encrypted in any form.
    public static let notEncrypted = Code(description: "notEncrypted")
    /// The message has a header version or a cryptor that this software does not know.
    public static let unknownCryptor = Code(description: "unknownCryptor")
    /// The message has a form for which the cipher was given no key.
    public static let formRefused = Code(description: "formRefused")
    /// The message names a key that the cipher does not have.
    public static let unknownKey = Code(description: "unknownKey")
    /// The key is wrong, the message was changed, or it belongs to another channel.
    public static let decryptionFailed = Code(description: "decryptionFailed")
    /// OpenSSL failed or lacks the algorithm.
    public static let libraryFailure = Code(description: "libraryFailure")
  }

  /// The kind of failure.
  public let code: Code

  /// The description of what went wrong and where, in lower case.
  public let message: String

  /// The next step; nil if there is none.
  public let hint: String?

  /// The error that caused this one; nil for all failures of decryption.
  public let underlying: (any Error)?

  private init(_ code: Code, _ message: String, hint: String? = nil, underlying: CryptoError? = nil)
  {
    self.code = code
    self.message = message
    self.hint = hint
    self.underlying = underlying
  }

  /// The message, and the hint in brackets.
  public var description: String { hint.map { "\(message) (\($0))" } ?? message }
}

// Arguments.
extension MessageCipherError {
  static func keyLength(
    _ byteCount: Int, _ form: MessageCipher.Form, _ lengths: ClosedRange<Int>
  ) -> MessageCipherError {
    let rule =
      lengths.count == 1
      ? "\(lengths.lowerBound)" : "\(lengths.lowerBound) to \(lengths.upperBound)"
    return MessageCipherError(
      .invalidArgument, "a key for the form \(form) has \(rule) bytes, not \(byteCount)",
      hint: lengths.count == 1
        ? "make one with SecretBytes.random(byteCount: \(lengths.lowerBound))" : nil)
  }

  static func indistinguishable(_ forms: [MessageCipher.Form]) -> MessageCipherError {
    let names = forms.map(\.description).joined(separator: " and ")
    return MessageCipherError(
      .invalidArgument, "messages under the keys of \(names) cannot be told apart",
      hint: "make a cipher for each, and choose between them by channel or time")
  }

  static func channelLength(_ byteCount: Int) -> MessageCipherError {
    MessageCipherError(
      .invalidArgument,
      "a channel's name has 1 to \(MessageCipher.maximumChannelByteCount) bytes, not \(byteCount)")
  }

  static func memberLength(_ byteCount: Int) -> MessageCipherError {
    MessageCipherError(
      .invalidArgument,
      "a member's name has at most \(MessageCipher.maximumMemberByteCount) bytes, not \(byteCount)")
  }

  static func notJSON(_ fault: JSONFault, on channel: String) -> MessageCipherError {
    MessageCipherError(
      .notJSON, "the message on channel '\(channel)' is not JSON: it \(fault)",
      hint: "encode the value as JSON first: a string has quotation marks")
  }

  static func memberMissing(_ name: String, on channel: String) -> MessageCipherError {
    MessageCipherError(
      .memberMissing, "the message on channel '\(channel)' is no object with a member '\(name)'")
  }

  static func tooLarge(_ what: String, _ byteCount: Int, limit: Int) -> MessageCipherError {
    MessageCipherError(
      .tooLarge, "the \(what) has \(byteCount) bytes, the limit is \(limit)", hint: "split it")
  }
}

// Messages that are not decrypted.
extension MessageCipherError {
  static func notEncrypted(on channel: String) -> MessageCipherError {
    MessageCipherError(
      .notEncrypted, "the message on channel '\(channel)' is not encrypted",
      hint: "its publisher has no cipher, or encrypts another part of the message")
  }

  static func unknownCryptor(_ what: String, on channel: String) -> MessageCipherError {
    MessageCipherError(
      .unknownCryptor, "unknown cryptor: the message on channel '\(channel)' has \(what)",
      hint: "read it with a later version, or with the software that wrote it")
  }

  static func formRefused(
    _ family: MessageCipher.SealedMessage.Family, on channel: String
  ) -> MessageCipherError {
    let form =
      switch family {
      case .xaes256GCM: "the form \(MessageCipher.Form.xaes256GCM)"
      case .aesCBC: "the form \(MessageCipher.Form.aesCBC), which is not authenticated"
      case .legacy: "a legacy form, which is not authenticated"
      }
    return MessageCipherError(
      .formRefused,
      "the message on channel '\(channel)' has \(form), and the cipher does not read it",
      hint: "if such messages are expected, give their key in alsoReading")
  }

  static func unknownKey(_ id: String, on channel: String) -> MessageCipherError {
    MessageCipherError(
      .unknownKey, "the message on channel '\(channel)' is under the key with the id \(id)",
      hint: "give that key in alsoReading")
  }

  static func decryptionFailed(on channel: String) -> MessageCipherError {
    MessageCipherError(
      .decryptionFailed, "the message on channel '\(channel)' cannot be decrypted",
      hint: "compare the key and the channel with the publisher's, or the message was changed")
  }

  static func library(_ error: CryptoError) -> MessageCipherError {
    MessageCipherError(.libraryFailure, "\(error)", underlying: error)
  }
}
