/// Notices that the session through which a vault was opened is over, until this object goes.
///
/// The kernel tells nobody when a key is revoked (keyctl(2) has `KEYCTL_WATCH_KEY`, which
/// distributions leave out), so it is asked four times a second: two system calls.
final class SessionWatch: Sendable {
  static let interval = Duration.milliseconds(250)

  private let task: Task<Void, Never>

  /// - Parameter tell: called once, when the session is over.
  init(
    _ place: SessionPlace, _ key: SessionKey,
    tell: @escaping @Sendable (SessionEnd) async -> Void
  ) {
    task = Task.detached(priority: .high) {
      var key = key
      while (try? await Task.sleep(for: Self.interval, clock: .continuous)) != nil {
        switch place.look(at: key) {
        case .live(let renewed): key = renewed
        case .over(let end): return await tell(end)
        }
      }
    }
  }

  deinit {
    task.cancel()
  }
}
