package import DataVault
internal import Foundation
package import Logging
package import MessagingQueue
internal import NIOCore

/// What a server listens on, and its limits.
package struct ServerConfiguration: Sendable {
  /// An address and how it is served.
  package struct Listening: Sendable {
    package var address: ListenAddress
    /// Nil for plain HTTP.
    package var identity: TLSIdentity?

    package init(_ address: ListenAddress, identity: TLSIdentity? = nil) {
      self.address = address
      self.identity = identity
    }
  }

  package var listening: [Listening]
  /// Where STOMP is spoken, without HTTP.
  ///
  /// Default: nowhere; STOMP over WebSocket is served beside HTTP.
  package var stompListening: [Listening] = []
  /// Whose web pages can speak STOMP over a WebSocket, beside those of the server's own origin.
  ///
  /// Default: none.
  package var stompOrigins: Set<WebOrigin> = []
  /// Where health and metrics are served; nil for health alone, on the addresses of the clients.
  package var operationsListening: Listening?
  /// Whether other machines reach the metrics.
  ///
  /// Default: false.
  package var allowsRemoteOperations = false
  /// Takes metrics, access log and audit log.
  package var operations = ServerOperations()
  package var limits = HTTPLimits()
  /// Default: 20,000.
  package var maximumConnectionCount = 20_000
  /// The most connections from an IPv4 address, or from a network of IPv6 (its first 64 bits); this machine has no such
  /// limit.
  ///
  /// Default: 2,000.
  package var maximumConnectionCountPerAddress = 2_000
  /// The most memory that clients can make the server hold, in bytes; a connection can have an eighth of it.
  ///
  /// Default: nil, a quarter of the machine's memory.
  package var memoryByteCount: Int?
  /// How long a subscriber waits for events at most.
  ///
  /// Default: 280 seconds; the SDKs wait 310.
  package var holdTime = PubNubService.holdTime
  /// Whether plain HTTP is served on addresses that other machines reach.
  ///
  /// Default: false.
  package var allowsPlainHTTP = false
  /// Whether other machines reach messages that open with the publicly known password.
  ///
  /// Default: false.
  package var allowsUnsecured = false
  /// How events are sent to webhooks.
  package var webhooks = WebhookConfiguration()
  /// The wall clock.
  var now: @Sendable () -> Date = { Date() }
  /// The clock that limits how fast Pusher clients can send.
  var uptime: @Sendable () -> NIODeadline = { .now() }
  /// How long a stop waits for requests.
  ///
  /// Default: 10 seconds.
  package var stopTime: Duration = .seconds(10)
  package var engine = EngineConfiguration()
  /// Lets the changes of an engine go through the log of its cluster, if its home is one of several.
  ///
  /// It returns the work that brings the log into the home until it is cancelled. Default: such a home is not served.
  package var replicate:
    (@Sendable (MessagingEngine, Vault) async throws -> @Sendable () async throws -> Void)?
  package var logger = Logger(label: "datavault.server")

  package init(_ listening: [Listening]) { self.listening = listening }
}
