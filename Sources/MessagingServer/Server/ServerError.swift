/// The error of a server that cannot start or continue.
package struct ServerError: Error, Sendable, CustomStringConvertible {
  /// The kind of failure, to be compared with the static members.
  package struct Code: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    init(_ name: String) { description = name }

    /// Another server runs on this home.
    package static let alreadyRunning = Code("alreadyRunning")
    /// An address cannot be listened on.
    package static let cannotListen = Code("cannotListen")
    /// A certificate or a private key cannot be read or used.
    package static let invalidCertificate = Code("invalidCertificate")
    /// The configuration would expose messages, and does not say so by name.
    package static let exposed = Code("exposed")
  }

  package let code: Code
  /// What failed and where, in lower case.
  package let message: String
  /// The next step, if there is one.
  package let hint: String?

  init(_ code: Code, _ message: String, hint: String? = nil) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// The message, and the hint in brackets.
  package var description: String { hint.map { "\(message) (\($0))" } ?? message }
}
