/// A client of Pusher's protocol, for our server and for Pusher's.
///
/// ```swift
/// let client = try PusherClient(
///   PusherConfiguration(
///     server: "https://messages.example.com", key: "key",
///     authorizer: ServerChannelAuthorizer(url: "https://example.com/pusher/auth")))
/// let orders = try await client.subscribe(to: "private-orders")
/// for try await event in orders { print(event) }
/// ```
///
/// It connects at the first subscription, and again after a lost connection, until ``close()``. All tasks can use it at
/// the same time.
public final class PusherClient: Sendable {
  /// What the client was made with.
  public let configuration: PusherConfiguration
  private let connection: PusherConnection

  /// - Throws: `invalidArgument` for an address that is none.
  public init(_ configuration: PusherConfiguration) throws(MessagingClientError) {
    self.configuration = configuration
    connection = PusherConnection(
      configuration,
      try Transport(
        configuration.server, configuration.trust, configuration.challenges,
        connectTime: configuration.connectTime, client: "pusher", logger: configuration.logger))
  }

  deinit { Task { [connection] in await connection.close() } }

  /// Subscribes to a channel; it returns when the server has confirmed it.
  ///
  /// - Throws: `unauthenticated` immediately for a private, presence or encrypted channel without an authorizer;
  ///   `forbidden` if the authorizer or the server refuses; `cannotConnect` and `refused`, which are final.
  public func subscribe(to channel: String) async throws(MessagingClientError) -> PusherSubscription
  {
    let subscription = PusherSubscription(channel, configuration, connection)
    if subscription.kind != .public, configuration.authorizer == nil {
      throw MessagingClientError(
        .unauthenticated,
        "the channel '\(channel)' needs an authorization, and the client has no authorizer",
        hint: "set the authorizer of its configuration, for example a ServerChannelAuthorizer")
    }
    if subscription.kind == .encrypted, configuration.decryption == nil {
      throw MessagingClientError(
        .invalidArgument, "the channel '\(channel)' is encrypted, and the client cannot decrypt it",
        hint: "set the decryption of its configuration, from the module PusherEncryption")
    }
    try await connection.add(subscription)
    return subscription
  }

  /// Ends all subscriptions and the connection.
  public func close() async { await connection.close() }

  /// The identity of the connection; nil while there is none.
  ///
  /// A publisher excludes it, so that it does not get its own events.
  public var socketID: String? { get async { await connection.socketID } }
}
