internal import SealedVFS

/// Pages that tell how many of them were read.
final class CountedPages: PageSource {
  private static let pagesPerStep = 128

  private let source: any PageSource
  private let progress: (PageProgress) -> Void
  private var readCount = 0

  let pageCount: UInt32

  init(_ source: any PageSource, _ progress: @escaping (PageProgress) -> Void) {
    self.source = source
    self.progress = progress
    pageCount = source.pageCount
  }

  func page(_ number: UInt32) -> [UInt8]? {
    readCount += 1
    if readCount % Self.pagesPerStep == 0 {
      progress(
        PageProgress(
          completedPageCount: min(readCount, Int(pageCount)), pageCount: Int(pageCount)))
    }
    return source.page(number)
  }
}
