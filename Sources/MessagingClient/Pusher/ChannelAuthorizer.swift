internal import VaultCrypto

/// What a subscription to a private, presence or encrypted channel asks for.
public struct ChannelAuthorizationRequest: Sendable, Hashable {
  /// The name of the channel.
  public let channel: String
  /// The connection that the authorization is for: another one, and each reconnection, needs its own.
  public let socketID: String

  /// Makes a request.
  public init(channel: String, socketID: String) {
    self.channel = channel
    self.socketID = socketID
  }
}

/// The permission to subscribe to a channel with one connection.
public struct ChannelAuthorization: Sendable {
  /// The signature: `KEY:CODE`.
  public let auth: String
  /// Who the user is, on presence channels: the JSON text exactly as it was signed.
  public let channelData: String?
  /// The key of an encrypted channel, in base64 as Pusher's `shared_secret`.
  ///
  /// It never leaves the client.
  public let channelKey: SharedSecret?

  /// Makes an authorization.
  public init(auth: String, channelData: String? = nil, channelKey: SharedSecret? = nil) {
    self.auth = auth
    self.channelData = channelData
    self.channelKey = channelKey
  }
}

/// Decides whether this client's user can subscribe to a channel, usually by asking the application's server.
///
/// It is asked at each subscription, and again after each reconnection. An answer that comes after the connection has
/// ended is dropped.
///
/// ```swift
/// struct MyAuthorizer: ChannelAuthorizer {
///   func authorize(_ request: ChannelAuthorizationRequest) async throws -> ChannelAuthorization {
///     ChannelAuthorization(auth: try await backend.signature(request.socketID, request.channel))
///   }
/// }
/// ```
public protocol ChannelAuthorizer: Sendable {
  /// - Throws: an error refuses the subscription, which gets it as its cause.
  func authorize(_ request: ChannelAuthorizationRequest) async throws -> ChannelAuthorization
}

/// A refusal of an authorization endpoint, or an answer of it that is none.
public struct ChannelAuthorizationError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The status of the answer.
  public let status: Int
  /// The body of the answer, at most 64 KiB of it.
  public let body: [UInt8]
  /// What failed.
  public let description: String

  /// Makes a refusal, for an authorizer of the application's own.
  public init(status: Int, body: [UInt8], description: String) {
    self.status = status
    self.body = body
    self.description = description
  }
}

/// Signs subscriptions with the application's secret key, as an application's server does.
///
/// Only for servers and tests: the secret key gives every right.
public struct SecretKeyAuthorizer: ChannelAuthorizer {
  private let key: String
  private let secretKey: SharedSecret
  private let channelData: @Sendable (String) -> String?

  /// - Parameter channelData: the JSON text of the user for a presence channel, with `user_id`.
  public init(
    key: String, secretKey: SharedSecret,
    channelData: @escaping @Sendable (_ channel: String) -> String? = { _ in nil }
  ) {
    self.key = key
    self.secretKey = secretKey
    self.channelData = channelData
  }

  /// Signs a subscription.
  ///
  /// - Throws: `invalidArgument` for a socket id or a channel that Pusher's server libraries do not sign; an error of
  ///   OpenSSL.
  public func authorize(_ request: ChannelAuthorizationRequest) throws -> ChannelAuthorization {
    // With other texts, the signature could be that of a call of the HTTP API.
    guard PusherName.isSocketID(request.socketID), PusherName.isChannel(request.channel) else {
      throw MessagingClientError(
        .invalidArgument, "the socket id or the channel name is not one that can be signed",
        hint: "a socket id is two numbers with a point; a name has up to 164 of A-Z a-z 0-9 _-=@,.;"
      )
    }
    let channelData =
      PusherChannelKind(request.channel) == .presence ? channelData(request.channel) : nil
    let text = "\(request.socketID):\(request.channel)" + (channelData.map { ":\($0)" } ?? "")
    let message = Array(text.utf8)
    let code = try secretKey.withSecret {
      unsafe try HMAC.sha256(key: $0, message: message.span.bytes)
    }
    return ChannelAuthorization(
      auth: "\(key):\(code.lowercaseHexadecimal)", channelData: channelData)
  }
}

extension [UInt8] {
  var lowercaseHexadecimal: String {
    let digits = Array("0123456789abcdef".utf8)
    return String(
      decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}
