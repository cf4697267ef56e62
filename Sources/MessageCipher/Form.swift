extension MessageCipher {
  /// A form of encrypted messages; later versions can add forms.
  public struct Form: Sendable, Hashable, CustomStringConvertible {
    /// The form's name, stable for programs.
    public let description: String

    /// Whether a change of a message is noticed.
    ///
    /// If it is false, anyone who carries or stores a message can change it, cut it, or move it to
    /// another channel.
    public let isAuthenticated: Bool

    /// DataVault's own: XAES-256-GCM, bound to the channel.
    ///
    /// The key has 32 random bytes.
    public static let xaes256GCM = Form(description: "xaes256GCM", isAuthenticated: true)

    /// PubNub's crypto module: AES-256-CBC with a random IV, not authenticated.
    public static let aesCBC = Form(description: "aesCBC", isAuthenticated: false)

    /// PubNub's older form: AES-256-CBC with a random IV, not authenticated.
    public static let legacyRandomIV = Form(description: "legacyRandomIV", isAuthenticated: false)

    /// PubNub's oldest form: AES-256-CBC with one IV for all messages, not authenticated.
    ///
    /// Equal messages are equal when encrypted. Use it only to read what exists.
    public static let legacyStaticIV = Form(description: "legacyStaticIV", isAuthenticated: false)
  }
}
