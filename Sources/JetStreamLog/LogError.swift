internal import CNATS

/// Why brokers cannot be used.
package struct LogError: Error, Sendable, CustomStringConvertible {
  /// The kind of failure, to be compared with the static members; a new version can add members.
  package struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The name of the member.
    package let description: String

    private init(_ name: String) { description = name }

    /// An address, or a certificate, is not one.
    package static let invalidSettings = Code("invalidSettings")
    /// No broker answers, or none with TLS where TLS is demanded.
    package static let unreachable = Code("unreachable")
    /// The brokers do not know the node, or do not let it do this.
    package static let notPermitted = Code("notPermitted")
    /// There is no stream of this shard.
    package static let streamMissing = Code("streamMissing")
    /// There is a stream of this shard already.
    package static let streamExists = Code("streamExists")
    /// A stream has the shard's name and other settings.
    package static let foreignStream = Code("foreignStream")
    /// The brokers are there and refuse, or do not answer in time.
    package static let noAnswer = Code("noAnswer")
    /// The connection was closed.
    package static let closed = Code("closed")
  }

  package let code: Code
  /// What failed, in lower case.
  package let message: String
  /// The next step, if there is one.
  package let hint: String?

  package init(_ code: Code, _ message: String, hint: String? = nil) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// The message, and the hint in brackets.
  package var description: String { hint.map { "\(message) (\($0))" } ?? message }
}

extension LogError {
  static let closed = LogError(.closed, "the connection to the brokers was closed")

  /// The error for a failed call of libnats, on the thread of the call.
  ///
  /// - Parameter code: JetStream's error code; 0 for none.
  init(_ status: natsStatus, during operation: String, _ code: jsErrCode = jsErrCode(0)) {
    var detail = unsafe String(cString: natsStatus_GetText(status))
    if code.rawValue != 0 {
      let text = unsafe nats_GetLastError(nil).map { unsafe String(cString: $0) } ?? ""
      detail = "\(text.isEmpty ? detail : text.printable), code \(code.rawValue)"
    }
    let message = "\(operation): \(detail)"
    switch status {
    case NATS_CONNECTION_AUTH_FAILED, NATS_NOT_PERMITTED:
      self.init(
        .notPermitted, message,
        hint: "let the brokers know the nkey that datavaultd cluster identity prints")
    case NATS_NO_SERVER, NATS_SSL_ERROR, NATS_SECURE_CONNECTION_REQUIRED,
      NATS_SECURE_CONNECTION_WANTED:
      self.init(
        .unreachable, message, hint: "check the addresses, the brokers, and whether they use TLS")
    case NATS_CONNECTION_CLOSED, NATS_CONNECTION_DISCONNECTED, NATS_INSUFFICIENT_BUFFER:
      self.init(
        .unreachable, "\(operation): the connection to the brokers is lost",
        hint: "the node connects again by itself; if it does not, see whether the brokers run")
    default: self.init(.noAnswer, message, hint: "check that a majority of the brokers runs")
    }
  }
}

extension String {
  /// What a broker says, fit for a log and a terminal: printable ASCII, at most 200 characters.
  var printable: String {
    String(
      decoding: utf8.prefix(200).map { (0x20..<0x7F).contains($0) ? $0 : UInt8(ascii: "?") },
      as: UTF8.self)
  }
}
