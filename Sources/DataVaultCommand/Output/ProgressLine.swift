internal import MessagingQueue
internal import SealedVFS
internal import Synchronization

/// How far long work has come: one line on standard error that is written over, for people only.
final class ProgressLine: Sendable {
  private let work: String
  private let shown = Mutex(-1)

  /// - Parameter work: what is being done, such as "verifying".
  init(_ work: String) {
    self.work = work
  }

  /// Does some work and shows its progress meanwhile.
  static func during<R>(
    _ work: String, _ body: ((PageProgress) -> Void) throws -> R
  ) rethrows -> R {
    let line = ProgressLine(work)
    defer { line.clear() }
    return try body { line.show($0) }
  }

  /// Shows whole percents, each once.
  func show(_ progress: PageProgress) {
    show(progress.completedPageCount, of: progress.pageCount)
  }

  /// Shows whole percents, each once.
  func show(_ progress: ExchangeProgress) { show(progress.completed, of: progress.total) }

  private func show(_ completed: Int, of total: Int) {
    guard OutputDescriptor.standardError.isTerminal, total > 0 else { return }
    let percentage = completed * 100 / total
    shown.withLock { shown in
      guard percentage > shown else { return }
      shown = percentage
      StandardError.write("\r\(work): \(percentage) %")
    }
  }

  /// Ends the work: what is said next begins at the margin.
  func clear() {
    if shown.withLock({ $0 >= 0 }) { StandardError.write("\r\u{1B}[K") }
  }
}
