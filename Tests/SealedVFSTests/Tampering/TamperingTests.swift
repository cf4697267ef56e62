import FaultVFS
import SealedVFS
import Testing

/// Changes a byte and cuts at a length, at thousands of places: the right rows, fewer commits of a
/// log, or an error.
@Suite struct TamperingTests {
  @Test(arguments: TamperedFiles.Kind.allCases)
  func `a changed byte at any offset makes no wrong row`(kind: TamperedFiles.Kind) throws {
    let fixture = try TamperingFixture()
    let image = try fixture.make(kind)
    #expect(fixture.digest(image.files).map(image.allowed.contains) == true)
    var refused = 0
    var wrong: [Int] = []
    for index in image.indices {
      let files = image.changed { $0[index] ^= 1 << UInt8(truncatingIfNeeded: index &* 5 >> 2 & 7) }
      guard let found = fixture.digest(files) else {
        refused += 1
        continue
      }
      if !image.allowed.contains(found) { wrong.append(index) }
    }
    #expect(wrong.isEmpty, "\(kind): at \(wrong.prefix(20)), \(wrong.count) in all")
    // All bytes of the database are authenticated; of a journal all but padding and checksums.
    switch kind {
    case .database: #expect(refused == image.indices.count)
    case .log: break
    case .journal, .spilledJournal: #expect(refused > image.indices.count / 2)
    }
  }

  @Test(arguments: TamperedFiles.Kind.allCases)
  func `a file cut at any length makes no wrong row`(kind: TamperedFiles.Kind) throws {
    let fixture = try TamperingFixture()
    let image = try fixture.make(kind)
    var wrong: [Int] = []
    for length in image.indices {
      let files = image.changed { $0 = Array($0.prefix(length)) }
      guard let found = fixture.digest(files) else { continue }
      if !image.allowed.contains(found) { wrong.append(length) }
    }
    // Three cuts cannot be detected. An empty database is a new one. A journal of no byte, or of
    // one zero, is finished. A journal that ends between two segments is an earlier state of
    // itself.
    switch kind {
    case .database: #expect(wrong == [0])
    case .journal: #expect(wrong == [0, 1])
    case .log: #expect(wrong.isEmpty)
    case .spilledJournal:
      let headers = image.laterHeaders
      #expect(!headers.isEmpty)
      let unexplained = wrong.dropFirst(2).filter { length in
        !headers.contains { ($0 - 512...$0 + 512).contains(length) }
      }
      #expect(unexplained.isEmpty)
    }
  }
}
