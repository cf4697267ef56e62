public import Logging
public import MessageCipher

/// What a client of Pusher's protocol has.
public struct PusherConfiguration: Sendable {
  /// The address of the server, such as `https://messages.example.com`.
  public var server: String
  /// The application's key; on our server its subscribe key.
  public var key: String
  /// Authorizes subscriptions to private, presence and encrypted channels; nil for public channels alone.
  public var authorizer: (any ChannelAuthorizer)?
  /// Opens the events of encrypted channels; nil for none.
  ///
  /// The module `PusherEncryption` has one.
  public var decryption: (any ChannelDecryption)?
  /// Decrypts the data of events, as ``PubNubConfiguration/cipher``.
  public var cipher: MessageCipher?
  /// Whose certificates the client trusts.
  ///
  /// Default: those of the system's authorities.
  public var trust = ServerTrust.system
  /// What answers a challenge of the server; nil for nothing.
  public var challenges: ClientChallenges?
  /// How long a connection can take.
  ///
  /// Default: 10 seconds.
  public var connectTime: Duration = .seconds(10)
  /// How long the server can take to answer the WebSocket handshake.
  ///
  /// Default: 10 seconds.
  public var answerTime: Duration = .seconds(10)
  /// How long the server can take to establish a connection, to answer a ping, and to confirm a subscription.
  ///
  /// Default: 30 seconds.
  public var pongTime: Duration = .seconds(30)
  /// The most bytes of events that wait for the application, and of the members of a channel.
  var waitingByteCount = 16 << 20
  /// The waits between attempts.
  public var backoff = Backoff()

  /// What the client does and what fails, without credentials and payloads: docs/how-to/display-client-logs.md.
  ///
  /// Default: nothing is written.
  public var logger = Logger.silent

  /// Makes a configuration with the defaults.
  public init(server: String, key: String, authorizer: (any ChannelAuthorizer)? = nil) {
    self.server = server
    self.key = key
    self.authorizer = authorizer
  }
}
