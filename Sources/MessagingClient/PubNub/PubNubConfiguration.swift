public import Logging
public import MessageCipher

/// What a client of PubNub's protocol has.
public struct PubNubConfiguration: Sendable {
  /// The address of the server, such as `https://messages.example.com`.
  public var server: String
  /// Names the application.
  public var subscribeKey: String
  /// Nil if the client does not publish.
  public var publishKey: String?
  /// Who the client is: up to 92 characters, the same at each start.
  public var userID: String
  /// An auth key of version 2 of the access manager, or a token of version 3.
  ///
  /// It goes by `https`, and by `http` to this machine alone, unless the challenges' guard allows more.
  public var authKey: SharedSecret?
  /// The application's secret key: it signs requests, and grants rights.
  ///
  /// Only for servers: it gives every right.
  public var secretKey: SharedSecret?
  /// Encrypts what is published, and decrypts what comes.
  public var cipher: MessageCipher?
  /// Whose certificates the client trusts.
  ///
  /// Default: those of the system's authorities.
  public var trust = ServerTrust.system
  /// What answers a challenge of the server; nil for nothing.
  public var challenges: ClientChallenges?
  /// How long the server counts the client as present after its last sign of life.
  ///
  /// Default: 300 seconds.
  public var presenceTime: Duration = .seconds(300)
  /// How long a connection can take.
  ///
  /// Default: 10 seconds.
  public var connectTime: Duration = .seconds(10)
  /// How long an answer can take, other than that of a subscription.
  ///
  /// Default: 10 seconds.
  public var answerTime: Duration = .seconds(10)
  /// How long a server holds the poll of a subscription at most, and some time for its answer.
  var pollTime: Duration = .seconds(310)
  /// The waits between attempts.
  public var backoff = Backoff()

  /// What the client does and what fails, without credentials and payloads: docs/how-to/display-client-logs.md.
  ///
  /// Default: nothing is written.
  public var logger = Logger.silent

  /// Makes a configuration with the defaults.
  public init(server: String, subscribeKey: String, publishKey: String? = nil, userID: String) {
    self.server = server
    self.subscribeKey = subscribeKey
    self.publishKey = publishKey
    self.userID = userID
  }
}
