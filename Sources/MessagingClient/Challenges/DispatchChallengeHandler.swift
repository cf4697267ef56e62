internal import Synchronization

/// Chooses among handlers by the location of the challenge.
///
/// Any number of handlers can be registered at any ``LocationPattern``, and no registration replaces another. Of those
/// that match the location, the handler at the most specific pattern answers:
///
/// 1. The kinds are compared in the order host, port, user and password, path.
/// 2. In the first kind that differs, the pattern with more exact tokens wins.
/// 3. If both have the same number, the pattern with fewer wildcards wins.
/// 4. Among equal patterns, the handler that was registered first wins.
///
/// A handler whose `canHandle` is false does not count, and the next one in this order is asked.
public final class DispatchChallengeHandler: ChallengeHandler {
  /// One registration, for ``DispatchChallengeHandler/unregister(_:)``.
  public struct Registration: Sendable, Hashable {
    fileprivate let number: Int
    /// The pattern.
    public let pattern: LocationPattern
  }

  private struct Entry: Sendable {
    let registration: Registration
    let handler: any ChallengeHandler
  }

  /// Numbers of all dispatchers of the process, so that none takes a registration of another one for its own.
  private static let nextNumber = Atomic<Int>(0)

  private let entries = Mutex<[Entry]>([])

  /// Makes a dispatcher without handlers.
  public init() {}

  /// Registers a handler at a location pattern, beside those that are there.
  ///
  /// - Throws: ``LocationError`` if the text is no pattern.
  @discardableResult
  public func register(
    _ handler: any ChallengeHandler, at location: String
  ) throws(LocationError) -> Registration {
    register(handler, at: try LocationPattern(location))
  }

  /// Registers a handler at a location pattern, beside those that are there.
  @discardableResult
  public func register(_ handler: any ChallengeHandler, at pattern: LocationPattern) -> Registration
  {
    let (number, _) = Self.nextNumber.add(1, ordering: .relaxed)
    let registration = Registration(number: number, pattern: pattern)
    entries.withLock { $0.append(Entry(registration: registration, handler: handler)) }
    return registration
  }

  /// Removes a registration; one that was removed before, or is another dispatcher's, is ignored.
  public func unregister(_ registration: Registration) {
    entries.withLock { entries in entries.removeAll { $0.registration == registration } }
  }

  /// Whether a handler at a matching location can handle the challenge.
  public func canHandle(_ request: ChallengeRequest) -> Bool { handler(for: request) != nil }

  /// Lets the handler at the most specific location answer; nil if there is none.
  public func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
    guard let handler = handler(for: request) else { return nil }
    return try await handler.handle(request)
  }

  /// The handlers at matching locations, the most specific one first.
  func handlers(for location: Location) -> [any ChallengeHandler] {
    let matching = entries.withLock { $0 }.filter { $0.registration.pattern.matches(location) }
    return matching.sorted { a, b in
      let (first, second) = (a.registration, b.registration)
      if first.pattern.isMoreSpecific(than: second.pattern) { return true }
      if second.pattern.isMoreSpecific(than: first.pattern) { return false }
      return first.number < second.number
    }.map(\.handler)
  }

  private func handler(for request: ChallengeRequest) -> (any ChallengeHandler)? {
    handlers(for: request.location).first { $0.canHandle(request) }
  }
}
