internal import MessagingQueue
internal import SealedVFS
internal import Synchronization

/// A progress line on standard error, which overwrites itself.
///
/// It is written only to a terminal, and shows the remaining time of long work.
final class ProgressLine: Sendable {
  private let work: String
  private let start = ContinuousClock.now
  private let shown = Mutex(-1)

  /// - Parameter work: the operation, such as "verifying".
  init(_ work: String) {
    self.work = work
  }

  /// Runs some work and shows its progress.
  static func during<R>(
    _ work: String, _ body: ((PageProgress) -> Void) throws -> R
  ) rethrows -> R {
    let line = ProgressLine(work)
    defer { line.clear() }
    return try body { line.show($0) }
  }

  /// Shows the progress in whole percent, each value once.
  func show(_ progress: PageProgress) {
    show(progress.completedPageCount, of: progress.pageCount)
  }

  /// Shows the progress in whole percent, each value once.
  func show(_ progress: WorkProgress) { show(progress.completed, of: progress.total) }

  private func show(_ completed: Int, of total: Int) {
    guard OutputDescriptor.standardError.isTerminal, total > 0 else { return }
    let percentage = completed * 100 / total
    shown.withLock { shown in
      guard percentage > shown else { return }
      shown = percentage
      StandardError.write("\r\(work): \(percentage) %\(rest(completed, of: total))\u{1B}[K")
    }
  }

  /// The remaining time at the rate so far; empty while that is a guess.
  private func rest(_ completed: Int, of total: Int) -> String {
    let elapsed = (ContinuousClock.now - start) / .seconds(1)
    guard elapsed > 2, completed > 0, completed < total else { return "" }
    let rate = Double(completed) / elapsed
    return ", \(PeopleText.age(seconds: Int64(Double(total - completed) / rate))) left"
  }

  /// Clears the line, so that the next output starts in the first column.
  func clear() {
    if shown.withLock({ $0 >= 0 }) { StandardError.write("\r\u{1B}[K") }
  }
}
