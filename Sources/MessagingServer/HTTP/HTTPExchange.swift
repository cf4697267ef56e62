internal import AccessControl
internal import NIOCore
internal import Synchronization

/// What a request leads to.
enum HTTPReply: Sendable {
  case response(HTTPResponse)
  /// The connection becomes a WebSocket.
  case webSocket(WebSocketOpening)
}

/// A request and the way to answer it: once, from any thread.
final class HTTPExchange: Sendable {
  private struct State {
    var isEnded = false
    /// What to do when the client leaves before the answer.
    var abandonment: (@Sendable () -> Void)?
    var route = Route.other
    var application: ApplicationID?
  }

  let request: HTTPRequest
  /// Runs the timers of this exchange.
  let eventLoop: any EventLoop
  private let state = Mutex(State())
  private let write: @Sendable (HTTPReply) -> Void

  init(
    _ request: HTTPRequest, on eventLoop: any EventLoop,
    write: @escaping @Sendable (HTTPReply) -> Void
  ) {
    self.request = request
    self.eventLoop = eventLoop
    self.write = write
  }

  /// Says what the request asks for, for metrics and logs.
  func describe(_ route: Route) { state.withLock { $0.route = route } }

  /// Says to which application the request belongs, for metrics and logs.
  func describe(_ application: ApplicationID) {
    state.withLock { $0.application = application }
  }

  /// What was said of the request.
  var subject: (route: Route, application: ApplicationID?) {
    state.withLock { ($0.route, $0.application) }
  }

  /// Whether it was answered, or the client has left.
  var isEnded: Bool { state.withLock { $0.isEnded } }

  /// Answers the request, unless it was answered or the client has left.
  func answer(_ response: HTTPResponse) {
    if end() { write(.response(response)) }
  }

  /// Answers a handshake by opening the WebSocket.
  func open(_ opening: WebSocketOpening) {
    if end() { write(.webSocket(opening)) }
  }

  /// Calls `body` if the client leaves before the answer, at most once; immediately if it has left.
  func onAbandon(_ body: @escaping @Sendable () -> Void) {
    let isEnded = state.withLock { state in
      if !state.isEnded { state.abandonment = body }
      return state.isEnded
    }
    if isEnded { body() }
  }

  /// Ends the exchange of a client that has left.
  func abandon() {
    let abandonment = state.withLock { $0.abandonment }
    if end() { abandonment?() }
  }

  /// Whether this call ended it.
  private func end() -> Bool {
    state.withLock { state in
      defer {
        state.isEnded = true
        state.abandonment = nil
      }
      return !state.isEnded
    }
  }
}
