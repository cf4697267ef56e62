internal import MessagingQueue
internal import SealedVFS
internal import Synchronization

/// A progress line on standard error, which overwrites itself.
///
/// It is written only to a terminal.
final class ProgressLine: Sendable {
  private let work: String
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
      StandardError.write("\r\(work): \(percentage) %")
    }
  }

  /// Clears the line, so that the next output starts in the first column.
  func clear() {
    if shown.withLock({ $0 >= 0 }) { StandardError.write("\r\u{1B}[K") }
  }
}
