/// The progress of work on a whole database.
public struct PageProgress: Sendable, Equatable {
  /// The number of pages done; never more than ``pageCount``.
  public let completedPageCount: Int

  /// The number of all pages, frames of the log included if they are part of the work.
  public let pageCount: Int

  /// Describes the progress at one moment.
  package init(completedPageCount: Int, pageCount: Int) {
    self.completedPageCount = completedPageCount
    self.pageCount = pageCount
  }
}
