internal import CommandInterface
internal import DataVault
internal import MessagingQueue
internal import SealedVFS
internal import Synchronization

/// A progress line on standard error, which overwrites itself.
///
/// It is written only to a terminal that can erase a line. It shows the part that is done, the rate,
/// and the remaining time.
final class ProgressLine: Sendable {
  /// What the progress counts.
  enum Unit {
    case bytes
    case messages
    case pages
  }

  private struct State {
    /// The beginning of this pass over the work: some work has two.
    var start = ContinuousClock.now
    var completed = 0
    var percentage = -1
    var lastTime: ContinuousClock.Instant?
    var isCleared = false
  }

  private let work: String
  private let unit: Unit
  private let start = ContinuousClock.now
  private let state = Mutex(State())

  /// - Parameter work: the operation, such as "verifying".
  init(_ work: String, unit: Unit = .pages) {
    self.work = work
    self.unit = unit
  }

  /// Runs some work and shows its progress.
  static func during<R>(
    _ work: String, _ body: ((PageProgress) -> Void) throws -> R
  ) rethrows -> R {
    let line = ProgressLine(work)
    defer { line.clear() }
    return try body { line.show($0) }
  }

  func show(_ progress: PageProgress) {
    show(progress.completedPageCount, of: progress.pageCount)
  }

  func show(_ progress: WorkProgress) { show(progress.completed, of: progress.total) }

  /// Shows the progress, at each percent and each second.
  ///
  /// Without a total, it shows nothing in the first second: most work is shorter.
  func show(_ completed: Int, of total: Int?) {
    guard Self.isShown, total != 0 else { return }
    let (percentage, now) = (total.map { completed * 100 / $0 }, ContinuousClock.now)
    state.withLock { state in
      if completed < state.completed { (state.start, state.percentage) = (now, -1) }
      state.completed = completed
      let isNext = percentage.map { $0 > state.percentage } ?? false
      let wait = Duration.seconds(state.lastTime == nil && percentage != nil ? 0 : 1)
      guard isNext || now - (state.lastTime ?? start) >= wait else { return }
      state.percentage = max(state.percentage, percentage ?? -1)
      state.lastTime = now
      let part = percentage.map { "\($0) %" } ?? amount(Double(completed))
      let line = "\(work): \(part)\(speed(completed, of: total, in: now - state.start))"
      StandardError.write("\r\(line)\(Terminal.eraseToEndOfLine)")
    }
  }

  /// The rate so far, and the remaining time at that rate; empty while both are a guess.
  private func speed(_ completed: Int, of total: Int?, in time: Duration) -> String {
    guard time >= .seconds(1), completed > 0 else { return "" }
    let rate = Double(completed) / (time / .seconds(1))
    let text = ", \(amount(rate))/s"
    guard time >= .seconds(2), let total, completed < total else { return text }
    let seconds = Double(total - completed) / rate
    return "\(text), \(PeopleText.age(seconds: Int64(seconds))) left"
  }

  private func amount(_ number: Double) -> String {
    switch unit {
    case .bytes: PeopleText.size(byteCount: Int(number))
    case .messages: "\(Int(number)) messages"
    case .pages: "\(Int(number)) pages"
    }
  }

  private static var isShown: Bool {
    OutputLevel.current != .quiet && OutputDescriptor.standardError.isTerminal
      && Terminal.movesCursor
  }

  /// Clears the line, so that the next output starts in the first column.
  func clear() {
    let (wasCleared, isShown) = state.withLock { state in
      defer { (state.isCleared, state.lastTime) = (true, nil) }
      return (state.isCleared, state.lastTime != nil)
    }
    if isShown { StandardError.write("\r\(Terminal.eraseToEndOfLine)") }
    if !wasCleared { Detail.say("\(work) took \(PeopleText.seconds(since: start))") }
  }
}

extension VaultAccess {
  /// Runs `body` with the open vault of an existing queue and without an engine, and shows its
  /// progress.
  func withVault<Result>(
    _ progress: String, _ body: (Vault, ProgressLine) async throws -> Result
  ) async throws -> Result {
    let vault = try await queueVault()
    let line = ProgressLine(progress)
    defer { line.clear() }
    return try await body(vault, line)
  }
}
