public import Logging
internal import NIOHTTP1
internal import StrictJSON
internal import VaultCrypto

/// Asks the application's server: a POST of `socket_id` and `channel_name` to a URL, as Pusher's clients send it.
///
/// It keeps no cookies and sends none. The answer is 200 or 201 with a JSON object: `auth`, `channel_data` on presence
/// channels, `shared_secret` on encrypted ones. Every other answer is a ``ChannelAuthorizationError`` with its status
/// and body.
public final class ServerChannelAuthorizer: ChannelAuthorizer {
  /// What the application can change in the request.
  public struct Fields: Sendable {
    /// Headers beside those of the request, such as `X-App-Version`.
    public var headers: [String: String] = [:]
    /// Headers whose values are secrets, such as `Authorization`.
    public var secretHeaders: [String: SharedSecret] = [:]
    /// Fields of the form beside `socket_id` and `channel_name`.
    public var parameters: [String: String] = [:]
  }

  /// Changes a request before it is sent.
  public typealias Customization =
    @Sendable (_ request: ChannelAuthorizationRequest, _ fields: inout Fields) async throws -> Void

  private static let bodyByteCount = 64 << 10

  private let transport: Transport
  private let target: String
  private let timeout: Duration
  private let customize: Customization?

  /// - Parameters:
  ///   - url: the endpoint, such as `https://example.com/pusher/auth`.
  ///   - challenges: answers a challenge of the endpoint.
  ///   - timeout: how long the answer can take. Default: 10 seconds.
  ///   - logger: by default nothing is written.
  /// - Throws: `invalidArgument` for a URL that is none.
  public init(
    url: String, trust: ServerTrust = .system, challenges: ClientChallenges? = nil,
    timeout: Duration = .seconds(10), logger: Logger? = nil, customize: Customization? = nil
  ) throws(MessagingClientError) {
    let (origin, target) = try Self.split(url)
    transport = try Transport(
      origin, trust, challenges, connectTime: timeout, client: "pusher-authorizer", logger: logger)
    self.target = target
    self.timeout = timeout
    self.customize = customize
  }

  private static func split(_ url: String) throws(MessagingClientError) -> (String, String) {
    guard let authority = url.firstRange(of: "://"), (try? Location(url)) != nil, !url.contains("#")
    else {
      throw MessagingClientError(
        .invalidArgument, "the URL of the authorization endpoint is not valid",
        hint: "give one such as https://example.com/pusher/auth")
    }
    let path = url[authority.upperBound...].drop { $0 != "/" && $0 != "?" }
    let target = path.utf8.starts(with: "/".utf8) ? String(path) : "/" + path
    return (String(url[..<path.startIndex]), target)
  }

  /// Asks the server.
  ///
  /// - Throws: ``ChannelAuthorizationError`` for a refusal; ``MessagingClientError`` if the server was not reached.
  public func authorize(_ request: ChannelAuthorizationRequest) async throws -> ChannelAuthorization
  {
    var fields = Fields()
    try await customize?(request, &fields)
    var form = RequestTarget(path: "")
    form.add("socket_id", request.socketID)
    form.add("channel_name", request.channel)
    for (name, value) in fields.parameters.sorted(by: { $0.key < $1.key })
    where name != "socket_id" && name != "channel_name" {
      form.add(RequestTarget.encode(name), value)
    }
    var call = ClientRequest(method: .POST, target: RequestTarget(path: target))
    call.body = form.query.secret().withBytes { bytes in (0..<bytes.byteCount).map { bytes[$0] } }
    call.headers =
      [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")]
      + fields.headers.map { ($0.key, SecretText($0.value)) }
      + fields.secretHeaders.map { ($0.key, SecretText($0.value)) }
    call.timeout = timeout
    call.answerByteCount = 1 << 20
    return try Self.authorization(try await transport.send(call))
  }

  private static func authorization(_ response: ClientResponse) throws -> ChannelAuthorization {
    guard [200, 201].contains(response.status) else {
      throw ChannelAuthorizationError(
        status: response.status, body: Array(response.body.prefix(bodyByteCount)),
        description: "the authorization endpoint answered with HTTP status \(response.status)")
    }
    guard let value = try? JSONReader.value(response.body), let auth = value.member("auth")?.string
    else {
      throw ChannelAuthorizationError(
        status: response.status, body: [],
        description: "the answer of the authorization endpoint is no JSON object with 'auth'")
    }
    let key = value.member("shared_secret")?.string.map {
      SharedSecret(SecretBytes(copying: Array($0.utf8)))
    }
    return ChannelAuthorization(
      auth: auth, channelData: value.member("channel_data")?.string, channelKey: key)
  }
}
