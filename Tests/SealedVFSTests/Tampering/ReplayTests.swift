import FaultVFS
import SealedVFS
import SystemPackage
import Testing

/// Pages and frames in other places, of other times and of other files.
@Suite struct ReplayTests {
  private static let pageByteCount = 4096

  private static func exchange(
    _ bytes: inout [UInt8], _ first: Int, _ second: Int, count: Int
  ) {
    let kept = Array(bytes[first..<first + count])
    bytes.replaceSubrange(first..<first + count, with: Array(bytes[second..<second + count]))
    bytes.replaceSubrange(second..<second + count, with: kept)
  }

  @Test func `any two pages exchanged, or one put in another's place, are refused`() throws {
    let bench = try TamperingFixture()
    let image = try bench.make(.database)
    let pageCount = image.bytes.count / Self.pageByteCount
    for first in 0..<pageCount {
      for second in 0..<pageCount where second != first {
        var files = image.files
        if var bytes = files[image.target] {
          Self.exchange(
            &bytes, first * Self.pageByteCount, second * Self.pageByteCount,
            count: Self.pageByteCount)
          files[image.target] = bytes
        }
        #expect(bench.digest(files) == nil, "\(first), \(second)")
        files = image.files
        let source = Array(
          image.bytes[first * Self.pageByteCount..<(first + 1) * Self.pageByteCount])
        files[image.target]?.replaceSubrange(
          second * Self.pageByteCount..<(second + 1) * Self.pageByteCount, with: source)
        #expect(bench.digest(files) == nil, "\(first) over \(second)")
      }
    }
  }

  @Test func `a page of another file under the same key is refused`() throws {
    let bench = try TamperingFixture()
    let image = try bench.make(.database)
    let other = try TamperingFixture().make(.database)  // of another id
    for page in 0..<image.bytes.count / Self.pageByteCount {
      var files = image.files
      let place = page * Self.pageByteCount..<(page + 1) * Self.pageByteCount
      files[image.target]?.replaceSubrange(place, with: Array(other.bytes[place]))
      #expect(bench.digest(files) == nil, "page \(page + 1)")
    }
  }

  @Test func `frames exchanged, repeated or of another log end it at a commit before them`() throws
  {
    let bench = try TamperingFixture()
    let image = try bench.make(.log)
    let other = try bench.make(.log)
    let frameCount = (image.bytes.count - 32) / 4120
    var fewer = 0
    for first in 0..<frameCount {
      for second in 0..<frameCount {
        let (from, to) = (32 + first * 4120, 32 + second * 4120)
        var variants: [[UInt8]] = []
        var bytes = image.bytes
        Self.exchange(&bytes, from, to, count: 4120)
        variants.append(bytes)
        bytes = image.bytes
        bytes.replaceSubrange(to..<to + 4120, with: Array(image.bytes[from..<from + 4120]))
        variants.append(bytes)
        bytes = image.bytes
        bytes.replaceSubrange(to..<to + 4120, with: Array(other.bytes[from..<from + 4120]))
        variants.append(bytes)
        for bytes in variants {
          var files = image.files
          files[image.target] = bytes
          let found = try #require(bench.digest(files), "\(first), \(second)")
          #expect(image.allowed.contains(found), "\(first), \(second)")
          if bytes != image.bytes { fewer += 1 }
        }
      }
    }
    #expect(fewer > frameCount)
  }

  @Test func `a page of the journal is not one of the database, nor one of the database its`()
    throws
  {
    let bench = try TamperingFixture()
    let image = try bench.make(.journal)
    let database = image.files[image.path.string] ?? []
    let records = (image.bytes.count - 512) / 4104
    #expect(records > 1)
    for record in 0..<records {
      let start = 512 + record * 4104
      let number = image.bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
      let page = (number - 1) * Self.pageByteCount
      var files = image.files
      files[image.target] = []
      files[image.path.string]?.replaceSubrange(
        page..<page + 4096, with: Array(image.bytes[start + 4..<start + 4100]))
      #expect(bench.digest(files) == nil)
      files = image.files
      files[image.target]?.replaceSubrange(
        start + 4..<start + 4100, with: Array(database[page..<page + 4096]))
      #expect(bench.digest(files) == nil)
    }
  }

  /// What the format cannot tell, and `docs/explanation/threat-model.md` says so.
  @Test func `what is not detected: a page's, a file's and a log's own older version`() throws {
    let bench = try TamperingFixture()
    bench.disk.load([:])
    let connection = try bench.connect()
    try connection.run(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO t VALUES (1, 'old')")
    let older = bench.disk.contents
    let oldDigest = try connection.digest()
    try connection.run("UPDATE t SET text = 'new'")
    let newer = bench.disk.contents
    let path = bench.path.string

    #expect(bench.digest(older) == oldDigest, "the whole older file")
    var files = newer
    files[path]?.replaceSubrange(4096..<8192, with: Array((older[path] ?? [])[4096..<8192]))
    bench.disk.load(files)
    #expect(try bench.connect().run("SELECT text FROM t") == ["old"], "the older version of page 2")

    let log = try bench.make(.log)
    files = log.files
    files[log.target] = nil
    #expect(bench.digest(files).map(log.allowed.contains) == true, "a log that is gone")

    let journal = try bench.make(.journal)
    files = journal.files
    files[journal.target] = nil
    #expect(bench.digest(files) != nil, "a hot journal that is gone")
  }
}
