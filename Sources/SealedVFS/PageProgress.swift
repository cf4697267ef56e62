/// How far work on a whole database has come, for whoever shows it.
public struct PageProgress: Sendable, Equatable {
  /// Pages done; never more than ``pageCount``.
  public let completedPageCount: Int

  /// All pages, frames of the log included where they are part of the work.
  public let pageCount: Int

  /// Describes a moment of the work.
  package init(completedPageCount: Int, pageCount: Int) {
    self.completedPageCount = completedPageCount
    self.pageCount = pageCount
  }
}
