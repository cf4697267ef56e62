/// Answers what machines ask about the server: health on every listener, metrics on a listener of their own.
struct OperationsService: Sendable {
  private static let health = Array("/health/".utf8)

  let operations: ServerOperations
  let connections: ConnectionSet
  let gate: HomeGate

  /// Answers a request for the health; false if it asks for something else.
  func answersHealth(_ exchange: HTTPExchange) -> Bool {
    let request = exchange.request
    guard request.method == "GET", request.target.starts(with: Self.health) else { return false }
    switch Self.path(request) {
    case Route.live.rawValue:
      exchange.describe(.live)
      exchange.answer(.operations(200, #"{"status":"live"}"#))
    case Route.ready.rawValue:
      exchange.describe(.ready)
      let health = health
      exchange.answer(
        .operations(health == .ready ? 200 : 503, #"{"status":"\#(health.rawValue)"}"#))
    default: return false
    }
    return true
  }

  private var health: ServerOperations.Health {
    guard operations.health == .ready else { return operations.health }
    return gate.isCutOff ? .cutOff : connections.memory.isNearlyFull ? .memory : .ready
  }

  /// Answers a request on the listener of the operators.
  func answer(_ exchange: HTTPExchange) {
    if answersHealth(exchange) { return }
    guard let registry = operations.registry, exchange.request.method == "GET",
      Self.path(exchange.request) == Route.metrics.rawValue
    else { return exchange.answer(.operations(404, #"{"status":"not found"}"#)) }
    let home = gate.openHome
    operations.metrics?.set(
      connections, openPollCount: home?.polls.count ?? 0,
      webSocketCount: home?.pusherSessions.count ?? 0, leaseCount: home?.leases.count ?? 0,
      isSealed: operations.isSealed)
    exchange.describe(.metrics)
    var response = HTTPResponse.operations(200, registry.text)
    response.contentType = PrometheusRegistry.contentType
    exchange.answer(response)
  }

  private static func path(_ request: HTTPRequest) -> String {
    String(decoding: request.target.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
  }
}

extension HTTPResponse {
  /// An answer that no web page of another origin can read.
  fileprivate static func operations(_ status: Int, _ text: String) -> HTTPResponse {
    var response = HTTPResponse(status, text)
    response.contentType = "application/json"
    response.allowsOtherOrigins = false
    return response
  }
}
