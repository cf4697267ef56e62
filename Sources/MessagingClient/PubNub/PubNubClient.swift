internal import NIOHTTP1
internal import StrictJSON
internal import Synchronization

/// A client of PubNub's protocol, for our server and for PubNub's.
///
/// ```swift
/// var configuration = PubNubConfiguration(
///   server: "https://messages.example.com", subscribeKey: "sub", publishKey: "pub", userID: "anna")
/// configuration.cipher = cipher
/// let client = try PubNubClient(configuration)
/// try await client.publish(Order(item: "book"), to: "orders")
/// for try await event in try client.subscribe(to: ["orders"]) { print(event) }
/// ```
///
/// All tasks can use a client at the same time. Its connections close with its last use.
public final class PubNubClient: Sendable {
  /// What the client was made with.
  public let configuration: PubNubConfiguration
  let transport: Transport
  let subscriptions = Mutex<[ObjectIdentifier: WeakSubscription]>([:])

  struct WeakSubscription: Sendable {
    weak let subscription: PubNubSubscription?
  }

  /// Connects when it first has something to send.
  ///
  /// - Throws: `invalidArgument` for an address, a key or a user id that is not valid.
  public init(_ configuration: PubNubConfiguration) throws(MessagingClientError) {
    guard (1...92).contains(configuration.userID.unicodeScalars.count) else {
      throw MessagingClientError(
        .invalidArgument, "the user id has no character, or more than 92",
        hint: "give each user an id, and the same one at each start")
    }
    self.configuration = configuration
    transport = try Transport(
      configuration.server, configuration.trust, configuration.challenges,
      connectTime: configuration.connectTime, client: "pubnub", logger: configuration.logger)
  }

  // MARK: - Requests

  /// The target of a call, by the segments of its path.
  func target(_ segments: String...) -> RequestTarget { RequestTarget(segments) }

  /// Sends a call with what all calls have, signed if the client has the secret key.
  ///
  /// - Parameter hasAuthKey: false for calls in which `auth` names the keys of others.
  func call(
    _ target: RequestTarget, method: HTTPMethod = .GET, body: [UInt8] = [],
    headers: [(name: String, value: SecretText)] = [], timeout: Duration? = nil,
    isSigned: Bool = true, hasAuthKey: Bool = true
  ) async throws(MessagingClientError) -> ClientResponse {
    var target = target
    target.add("uuid", configuration.userID)
    target.add("pnsdk", "DataVault")
    if hasAuthKey { target.add("auth", configuration.authKey) }
    if isSigned, let secretKey = configuration.secretKey {
      try PubNubSignature.sign(
        &target, method: method.rawValue, body: body, publishKey: configuration.publishKey ?? "",
        secretKey: secretKey)
    }
    var request = ClientRequest(method: method, target: target, headers: headers, body: body)
    request.timeout = timeout ?? configuration.answerTime
    return try await transport.send(request)
  }

  /// The JSON of an answer that says success.
  func object(_ response: ClientResponse, _ message: String) throws(MessagingClientError)
    -> JSONValue
  {
    guard response.status == 200 else { throw refusal(response, message) }
    guard let value = try? JSONReader.value(response.body) else {
      throw MessagingClientError(.invalidAnswer, "\(message): the answer is no JSON")
    }
    return value
  }

  /// What the server says of a refusal, in each form of its services.
  func refusal(_ response: ClientResponse, _ message: String) -> MessagingClientError {
    let value = try? JSONReader.value(response.body)
    let reason =
      value?.member("message")?.string ?? value?.member("error_message")?.string ?? value?.member(
        "error")?.member("message")?.string
      ?? value?.elements?.dropFirst().first?.string
    return MessagingClientError(
      response, reason.map { "\(message): \(EscapedText($0).text)" } ?? message)
  }

  /// The server's time.
  public func time() async throws(MessagingClientError) -> Timetoken {
    let value = try object(
      try await call(target("time", "0"), isSigned: false), "the time is not known")
    guard let number = value.elements?.first?.integer, let timetoken = Timetoken(rawValue: number)
    else {
      throw MessagingClientError(.invalidAnswer, "the server's time is no timetoken")
    }
    return timetoken
  }
}
