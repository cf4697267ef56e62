internal import CoreMetrics
internal import Synchronization

/// The metrics of a server; nil if no backend takes them.
///
/// Those of the engine beneath it are the engine's own.
final class ServerMetrics: Sendable {
  /// The names; `docs/reference/server-observation.md` has their meanings.
  enum Name: String, CaseIterable {
    case connections = "datavault_server_connections"
    case memory = "datavault_server_memory_bytes"
    case memoryLimit = "datavault_server_memory_limit_bytes"
    case openPolls = "datavault_server_open_polls"
    case webSockets = "datavault_server_websockets"
    case leases = "datavault_server_leases"
    case sealed = "datavault_server_sealed"
    case requests = "datavault_server_requests_total"
    case requestTime = "datavault_server_request_seconds"
    case messages = "datavault_server_messages_published_total"
    case messageBytes = "datavault_server_published_bytes_total"
    case refusals = "datavault_server_refusals_total"
    case webhooks = "datavault_server_webhook_attempts_total"

    var help: String {
      switch self {
      case .connections: "Open connections of clients"
      case .memory: "Bytes that clients make the server hold"
      case .memoryLimit: "The most of them"
      case .openPolls: "Subscribers that wait for events"
      case .webSockets: "Clients of Pusher's protocol that are connected"
      case .leases: "Messages that clients of STOMP hold as leases"
      case .sealed: "1 while the vault is locked"
      case .requests: "Answered requests by the template of their route, and status"
      case .requestTime: "Seconds from the last byte of a request to its answer"
      case .messages: "Messages published through the server, after their commit"
      case .messageBytes: "Bytes of their payloads"
      case .refusals: "Requests refused to protect the server"
      case .webhooks: "Attempts to deliver events to webhooks"
      }
    }
  }

  /// Why a request was refused to protect the server.
  enum Refusal: String, CaseIterable {
    /// Too much waits for its commit.
    case admission
    /// A connection sends too many requests.
    case rate
    /// A connection holds too much memory.
    case memory
    /// The application stores too much.
    case quota
  }

  /// A sentence for each name.
  static let help = Dictionary(
    uniqueKeysWithValues: Name.allCases.map { ($0.rawValue, $0.help) })

  private struct RouteStatus: Hashable {
    let route: Route
    let status: Int
  }

  /// Made at the first request of a route, and of a route and status.
  private struct PerRoute {
    private var requests: [RouteStatus: Counter] = [:]
    private var times: [Route: Timer] = [:]

    mutating func counter(of record: RequestRecord, _ factory: any MetricsFactory) -> Counter {
      let key = RouteStatus(route: record.route, status: record.status)
      if let counter = requests[key] { return counter }
      let counter = Counter(
        label: Name.requests.rawValue,
        dimensions: [("route", key.route.rawValue), ("status", String(key.status))],
        factory: factory)
      requests[key] = counter
      return counter
    }

    mutating func timer(of route: Route, _ factory: any MetricsFactory) -> Timer {
      if let timer = times[route] { return timer }
      let timer = Timer(
        label: Name.requestTime.rawValue, dimensions: [("route", route.rawValue)],
        preferredDisplayUnit: .seconds, factory: factory)
      times[route] = timer
      return timer
    }
  }

  private let factory: any MetricsFactory
  private let connections: Gauge
  private let memory: Gauge
  private let memoryLimit: Gauge
  private let openPolls: Gauge
  private let webSockets: Gauge
  private let leases: Gauge
  private let sealed: Gauge
  private let messages: Counter
  private let messageBytes: Counter
  private let refusals: [Refusal: Counter]
  private let deliveredWebhooks: Counter
  private let failedWebhooks: Counter
  private let perRoute = Mutex(PerRoute())

  /// - Returns: nil for the factory that discards everything, so that nothing is counted for it.
  init?(_ factory: any MetricsFactory) {
    if factory is NOOPMetricsHandler { return nil }
    func gauge(_ name: Name) -> Gauge { Gauge(label: name.rawValue, factory: factory) }
    func counter(_ name: Name, _ labels: [(String, String)] = []) -> Counter {
      Counter(label: name.rawValue, dimensions: labels, factory: factory)
    }
    self.factory = factory
    connections = gauge(.connections)
    memory = gauge(.memory)
    memoryLimit = gauge(.memoryLimit)
    openPolls = gauge(.openPolls)
    webSockets = gauge(.webSockets)
    leases = gauge(.leases)
    sealed = gauge(.sealed)
    messages = counter(.messages)
    messageBytes = counter(.messageBytes)
    refusals = Dictionary(
      uniqueKeysWithValues: Refusal.allCases.map {
        ($0, counter(.refusals, [("reason", $0.rawValue)]))
      })
    deliveredWebhooks = counter(.webhooks, [("outcome", "delivered")])
    failedWebhooks = counter(.webhooks, [("outcome", "failed")])
  }

  /// Counts a request that has ended.
  func count(_ record: RequestRecord) {
    let (counter, timer) = perRoute.withLock { perRoute -> (Counter, Timer) in
      (perRoute.counter(of: record, factory), perRoute.timer(of: record.route, factory))
    }
    counter.increment()
    guard record.status != RequestRecord.abandoned else { return }
    let (seconds, attoseconds) = record.time.components
    timer.recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
  }

  /// Counts a message whose commit is durable.
  func countPublished(byteCount: Int) {
    messages.increment()
    messageBytes.increment(by: byteCount)
  }

  /// Counts an attempt to deliver events to a webhook.
  func countWebhook(isDelivered: Bool) {
    (isDelivered ? deliveredWebhooks : failedWebhooks).increment()
  }

  func count(_ refusal: Refusal) { refusals[refusal]?.increment() }

  /// Sets what is not counted as it happens: before each answer with the metrics.
  func set(
    _ set: ConnectionSet, openPollCount: Int, webSocketCount: Int, leaseCount: Int, isSealed: Bool
  ) {
    connections.record(set.count)
    memory.record(set.memory.byteCount)
    memoryLimit.record(set.memory.limitByteCount)
    openPolls.record(openPollCount)
    webSockets.record(webSocketCount)
    leases.record(leaseCount)
    sealed.record(isSealed ? 1 : 0)
  }
}
