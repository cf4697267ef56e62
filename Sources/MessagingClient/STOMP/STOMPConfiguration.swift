public import Logging
public import MessageCipher

/// What a STOMP client has.
public struct STOMPConfiguration: Sendable {
  /// The address of the server.
  ///
  /// `stomp://host:port` is a TCP stream, and `stomps://host:port` one with TLS. `http://host` and `https://host`, with
  /// or without a port, are a WebSocket at `/stomp/APPLICATION`.
  public var server: String
  /// The name of the application, which is the header `host` of CONNECT.
  ///
  /// Other servers call it a virtual host.
  public var application: String
  /// Who the client is, on our server at least the publish key of the application; nil for one whose ``challenges`` say
  /// it.
  public var login: STOMPLogin?
  /// Whether a passcode can be sent without TLS to another machine, where others on the way can read it.
  ///
  /// Default: false.
  public var sendsPasscodeUnprotected = false
  /// Encrypts the bodies of messages, and decrypts what comes; headers are not encrypted.
  ///
  /// A body is bound to the name of its channel. A body of JSON is encrypted as the clients of PubNub's and Pusher's
  /// protocols do it, so that they can decrypt it; another body is encrypted as bytes.
  public var cipher: MessageCipher?
  /// Whose certificates the client trusts.
  ///
  /// Default: the authorities of the system.
  public var trust = ServerTrust.system
  /// What answers a challenge to the handshake of a WebSocket; nil for nothing.
  public var challenges: ClientChallenges?
  /// How often the client can send a heart-beat; zero for never.
  ///
  /// Default: 10 seconds.
  public var sendsHeartBeatEvery: Duration = .seconds(10)
  /// How often the client wants a heart-beat of the server; zero for never.
  ///
  /// A server that is silent for twice this time is lost.
  /// Default: 10 seconds.
  public var wantsHeartBeatEvery: Duration = .seconds(10)
  /// How long a connection can take.
  ///
  /// Default: 10 seconds.
  public var connectTime: Duration = .seconds(10)
  /// How long the server can take to answer CONNECT, and to give a receipt.
  ///
  /// Default: 30 seconds.
  public var answerTime: Duration = .seconds(30)
  /// How long the client waits before it connects again.
  public var backoff = Backoff()
  /// The bytes of messages that wait for the application before the client reads no further.
  ///
  /// Beyond the mode ``STOMPAcknowledgeMode/auto``, as many messages as the prefetch can wait whatever their size.
  ///
  /// Default: 1 MiB.
  public var waitingByteCount = 1 << 20

  /// What the client does and what fails, without credentials and payloads: docs/how-to/display-client-logs.md.
  ///
  /// Default: nothing is written.
  public var logger = Logger.silent

  /// Makes a configuration, whose other properties have their defaults.
  public init(server: String, application: String, login: STOMPLogin? = nil) {
    self.server = server
    self.application = application
    self.login = login
  }
}

/// Who a client of STOMP is.
public struct STOMPLogin: Sendable {
  enum Source: Sendable {
    case fixed(login: String, passcode: SharedSecret?)
    case handler(any LoginHandler)
  }

  let source: Source

  /// A user with a password, or on our server the publish key with an auth key, a token or the secret key.
  ///
  /// A client whose login the server refuses sends it no more.
  public static func credentials(login: String, passcode: SharedSecret? = nil) -> STOMPLogin {
    STOMPLogin(source: .fixed(login: login, passcode: passcode))
  }

  /// Asks for a user and a password before the first connection, and again after the server has refused them.
  ///
  /// The request has no realm. Its origin has the scheme `http` for `stomp`, and `https` for `stomps`. After three
  /// refusals it is not asked again. What the server has refused is not sent again.
  public static func handler(_ handler: any LoginHandler) -> STOMPLogin {
    STOMPLogin(source: .handler(handler))
  }
}
