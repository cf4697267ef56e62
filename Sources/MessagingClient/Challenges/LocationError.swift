/// The error of a URL that is no location, or of a pattern that is no location pattern.
///
/// It does not repeat the text, which can contain a password.
public struct LocationError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kinds of failure; later versions can add kinds.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name, stable for programs.
    public let description: String

    /// The text breaks a rule of the grammar; the message says which.
    public static let malformed = Code(description: "malformed")
    /// The scheme is missing, or none of `http`, `https`, `ws` and `wss`.
    public static let unknownScheme = Code(description: "unknownScheme")
    /// The text is longer than ``Location/maximumByteCount``.
    public static let tooLong = Code(description: "tooLong")
  }

  /// The kind of failure.
  public let code: Code

  /// The description of what is wrong, in lower case, without the text itself.
  public let message: String

  private init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// The message.
  public var description: String { message }

  static func malformed(_ what: String) -> LocationError { LocationError(.malformed, what) }

  static let unknownScheme = LocationError(
    .unknownScheme, "a location begins with http://, https://, ws:// or wss://")

  static let tooLong = LocationError(
    .tooLong, "a location has at most \(Location.maximumByteCount) bytes")
}
