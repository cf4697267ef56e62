import Glibc

/// A kind of server: the requests of its clients, and how its answers end.
enum Service {
  case pubNub(publishKey: String, subscribeKey: String)
  /// Subscribers with Pusher's protocol, to what is published with PubNub's.
  case pusher(publishKey: String, subscribeKey: String)
  case nchan
  /// nchan with its WebSocket subscribers.
  case nchanWebSocket
  case redis
  /// `login` is nil for a client without a password.
  case stomp(host: String, login: (name: String, passcode: String)?)

  /// What a subscriber has got so far, in the form of its next request.
  typealias Cursor = String

  /// The size of each message: of the JSON text, or of the bytes.
  static let payloadByteCount = 1024

  init?(_ text: String) {
    let words = text.split(separator: ":").map(String.init)
    switch words.first {
    case "pubnub" where words.count == 3:
      self = .pubNub(publishKey: words[1], subscribeKey: words[2])
    case "pusher" where words.count == 3:
      self = .pusher(publishKey: words[1], subscribeKey: words[2])
    case "nchan": self = .nchan
    case "nchan-websocket": self = .nchanWebSocket
    case "redis": self = .redis
    case "stomp" where words.count == 2: self = .stomp(host: words[1], login: nil)
    case "stomp" where words.count == 4:
      self = .stomp(host: words[1], login: (name: words[2], passcode: words[3]))
    default: return nil
    }
  }

  /// A publication: for PubNub the GET of its SDKs, with the text of a JSON string.
  ///
  /// - Parameter mark: the beginning of the message.
  func publish(_ mark: String, by client: Int) -> [UInt8] {
    let text = mark + String(repeating: "x", count: Self.payloadByteCount - 2 - mark.utf8.count)
    let request =
      switch self {
      case .pubNub(let publishKey, let subscribeKey), .pusher(let publishKey, let subscribeKey):
        Self.get(
          "/publish/\(publishKey)/\(subscribeKey)/0/benchmark/0/%22\(text)%22?\(Self.caller(client))"
        )
      case .nchan, .nchanWebSocket:
        """
        POST /publish/benchmark HTTP/1.1\r
        Host: 127.0.0.1\r
        Content-Length: \(Self.payloadByteCount)\r
        \r
        "\(text)"
        """
      case .redis:
        """
        *5\r
        $4\r
        XADD\r
        $9\r
        benchmark\r
        $1\r
        *\r
        $7\r
        payload\r
        $\(Self.payloadByteCount)\r
        "\(text)"\r\n
        """
      case .stomp: Self.stompFrame(publishing: "\"\(text)\"", receipt: "\(client)")
      }
    return Array(request.utf8)
  }

  /// The service that a publisher's connection has: publishers use HTTP where subscribers use WebSocket.
  var ofPublisher: Service {
    switch self {
    case .pusher(let publishKey, let subscribeKey):
      .pubNub(publishKey: publishKey, subscribeKey: subscribeKey)
    case .nchanWebSocket: .nchan
    case .pubNub, .nchan, .redis, .stomp: self
    }
  }

  /// A long poll; nil if the server sends messages by itself.
  func poll(after cursor: Cursor?, by client: Int) -> [UInt8]? {
    switch self {
    case .pubNub(_, let subscribeKey):
      let place = cursor ?? "0"
      let target = "/v2/subscribe/\(subscribeKey)/benchmark/0?tt=\(place)&\(Self.caller(client))"
      return Array(Self.get(target).utf8)
    case .nchan: return Array(Self.get("/subscribe/benchmark", headers: cursor ?? "").utf8)
    case .pusher, .nchanWebSocket: return nil
    case .redis, .stomp: preconditionFailure("no subscribers of this service are measured")
    }
  }

  /// Whether the first poll of a client is answered immediately, with the place to continue from.
  var hasHandshake: Bool { if case .pubNub = self { true } else { false } }

  /// The place that an answer to a poll names, for the next poll.
  func cursor(of answer: Answer) -> Cursor? {
    switch self {
    // {"t":{"t":"17...","r":1},"m":[...]}
    case .pubNub: answer.text(between: "\"t\":{\"t\":\"", and: "\"")
    case .nchan:
      if let modified = answer.text(between: "Last-Modified: ", and: "\r\n"),
        let tag = answer.text(between: "Etag: ", and: "\r\n")
      {
        "If-Modified-Since: \(modified)\r\nIf-None-Match: \(tag)\r\n"
      } else {
        nil
      }
    case .pusher, .nchanWebSocket, .redis, .stomp: nil
    }
  }

  /// What begins a connection, before its requests.
  var greeting: [GreetingStep] {
    switch self {
    case .pubNub, .nchan, .redis: []
    case .pusher(_, let subscribeKey):
      [
        Self.upgrade("/app/\(subscribeKey)?protocol=7&client=js&version=8.4.0"),
        GreetingStep(request: [], answer: "pusher:connection_established"),
        GreetingStep(
          request: Self.webSocketFrame(
            #"{"event":"pusher:subscribe","data":{"channel":"benchmark"}}"#),
          answer: "pusher_internal:subscription_succeeded"),
      ]
    case .nchanWebSocket: [Self.upgrade("/subscribe/benchmark")]
    case .stomp(let host, let login): [Self.stompGreeting(host: host, login: login)]
    }
  }

  /// One request of a greeting, empty where the server speaks first, and a text in its answer.
  struct GreetingStep {
    let request: [UInt8]
    let answer: String
  }

  /// The first answer; nil if the bytes end before it does.
  func answer(_ bytes: ArraySlice<UInt8>) -> Answer? {
    switch self {
    case .pubNub, .nchan: Answer(http: bytes)
    case .pusher, .nchanWebSocket: Answer(webSocket: bytes)
    case .redis: Answer(redis: bytes)
    case .stomp: Answer(stomp: bytes)
    }
  }

  /// What PubNub's SDK for Python adds to each request.
  private static func caller(_ client: Int) -> String {
    "pnsdk=PubNub-Python%2F10.4.0&uuid=client-\(client)"
  }

  private static func get(_ target: String, headers: String = "") -> String {
    """
    GET \(target) HTTP/1.1\r
    Host: 127.0.0.1\r
    User-Agent: PubNub-Python/10.4.0\r
    Accept: */*\r
    Accept-Encoding: gzip, deflate\r
    Connection: keep-alive\r
    \(headers)\r\n
    """
  }
}
