internal import Foundation
public import Logging
internal import NIOHTTP1
internal import StrictJSON
internal import VaultCrypto

/// Publishes over Pusher's HTTP API with an application's secret key, as an application's server does.
public final class PusherPublisher: Sendable {
  private let applicationID: String
  private let key: String
  private let secretKey: SharedSecret
  private let transport: Transport
  private let backoff: Backoff

  /// - Parameters:
  ///   - server: the address, such as `https://messages.example.com`.
  ///   - applicationID: the application's number.
  ///   - key: on our server its subscribe key.
  ///   - logger: by default nothing is written.
  /// - Throws: `invalidArgument` for an address that is none.
  public init(
    server: String, applicationID: String, key: String, secretKey: SharedSecret,
    trust: ServerTrust = .system, backoff: Backoff = Backoff(),
    connectTime: Duration = .seconds(10), logger: Logger? = nil
  ) throws(MessagingClientError) {
    self.applicationID = applicationID
    self.key = key
    self.secretKey = secretKey
    self.backoff = backoff
    transport = try Transport(
      server, trust, nil, connectTime: connectTime, client: "pusher-publisher", logger: logger)
  }

  /// Publishes an event to channels, all or none.
  ///
  /// On our server it is durable on return. A server that knows deduplication ids gets the event again after a lost
  /// answer, and stores it once.
  ///
  /// - Parameters:
  ///   - data: a text, usually JSON; at most 10,240 bytes.
  ///   - channels: 1 to 100.
  ///   - socketID: the connection that does not get the event.
  /// - Throws: as ``PubNubClient/publish(json:to:_:)``.
  public func trigger(
    _ name: String, data: String, on channels: [String], excluding socketID: String? = nil
  ) async throws(MessagingClientError) {
    var members = [
      JSONMember("name", .string(name)), JSONMember("data", .string(data)),
      JSONMember("channels", .array(channels.map { .string($0) })),
    ]
    if let socketID { members.append(JSONMember("socket_id", .string(socketID))) }
    let (path, body) = (
      ["apps", applicationID, "events"], Array(JSONValue.object(members).text.utf8)
    )
    let headers: [(name: String, value: SecretText)] = [
      ("Content-Type", "application/json"),
      (Deduplication.idHeader, SecretText(Deduplication.makeID())),
    ]
    try await Deduplication.publish(backoff, transport) { () throws(MessagingClientError) in
      // Each attempt has a time of its own: an old signature is refused.
      var request = try self.signed("POST", path, body)
      request.headers = headers
      let response = try await self.transport.send(request)
      guard response.status == 200 else {
        let reason = EscapedText(String(decoding: response.body.prefix(200), as: UTF8.self)).text
        throw MessagingClientError(response, "the event was not published: \(reason)")
      }
    }
  }

  private func signed(
    _ method: String, _ path: [String], _ body: [UInt8]
  ) throws(MessagingClientError) -> ClientRequest {
    var target = RequestTarget(path)
    do throws(CryptoError) {
      target.add("auth_key", key)
      target.add("auth_timestamp", "\(Int64(Date().timeIntervalSince1970))")
      target.add("auth_version", "1.0")
      target.add("body_md5", unsafe try LegacyDigest.md5(body.span.bytes).lowercaseHexadecimal)
      target.sort()
      let text = SecretText("\(method)\n\(target.path)\n") + target.query
      let code = try secretKey.withSecret { (key) throws(CryptoError) in
        try text.secret().withBytes { (bytes) throws(CryptoError) in
          try HMAC.sha256(key: key, message: bytes)
        }
      }
      target.add("auth_signature", code.lowercaseHexadecimal)
    } catch {
      throw MessagingClientError(.invalidArgument, "the request cannot be signed: \(error)")
    }
    return ClientRequest(method: HTTPMethod(rawValue: method), target: target, body: body)
  }
}
