import FaultVFS
import SealedVFS
import SystemPackage
import Testing

/// Pages and frames that were moved, restored from earlier versions, or taken from other files.
@Suite struct ReplayTests {
  @Test func `exchanged pages, and a page copied over another, are refused`() throws {
    let fixture = try TamperingFixture()
    let image = try fixture.make(.database)
    let pages = 1...image.bytes.count / 4096
    for first in pages {
      for second in pages where second != first {
        let exchanged = image.changed {
          ($0[page: first], $0[page: second]) = ($0[page: second], $0[page: first])
        }
        #expect(fixture.digest(exchanged) == nil, "\(first), \(second)")
        let copied = image.changed { $0[page: second] = image.bytes[page: first] }
        #expect(fixture.digest(copied) == nil, "\(first) over \(second)")
      }
    }
  }

  @Test func `a page of another file under the same key is refused`() throws {
    let fixture = try TamperingFixture()
    let image = try fixture.make(.database)
    let other = try TamperingFixture().make(.database)  // with another id
    for page in 1...image.bytes.count / 4096 {
      let mixed = image.changed { $0[page: page] = other.bytes[page: page] }
      #expect(fixture.digest(mixed) == nil, "page \(page)")
    }
  }

  @Test func `exchanged, repeated or foreign frames end the log at an earlier commit`() throws {
    let fixture = try TamperingFixture()
    let image = try fixture.make(.log)
    let other = try fixture.make(.log)
    let frameCount = (image.bytes.count - 32) / 4120
    var fewer = 0
    for first in 0..<frameCount {
      for second in 0..<frameCount {
        let (from, to) = (32 + first * 4120, 32 + second * 4120)
        var variants = [image.bytes, image.bytes, image.bytes]
        variants[0].replaceSubrange(from..<from + 4120, with: image.bytes[to..<to + 4120])
        variants[0].replaceSubrange(to..<to + 4120, with: image.bytes[from..<from + 4120])
        variants[1].replaceSubrange(to..<to + 4120, with: image.bytes[from..<from + 4120])
        variants[2].replaceSubrange(to..<to + 4120, with: other.bytes[from..<from + 4120])
        for bytes in variants {
          let files = image.changed { $0 = bytes }
          let found = try #require(fixture.digest(files), "\(first), \(second)")
          #expect(image.allowed.contains(found), "\(first), \(second)")
          if bytes != image.bytes { fewer += 1 }
        }
      }
    }
    #expect(fewer > frameCount)
  }

  @Test func `a journal page in the database, or a database page in the journal, is refused`()
    throws
  {
    let fixture = try TamperingFixture()
    let image = try fixture.make(.journal)
    let database = image.files[image.path.string] ?? []
    let records = (image.bytes.count - 512) / 4104
    #expect(records > 1)
    for record in 0..<records {
      let start = 512 + record * 4104
      let number = image.bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
      var files = image.changed { $0 = [] }
      files[image.path.string]?[page: number] = image.bytes[start + 4..<start + 4100]
      #expect(fixture.digest(files) == nil)
      files = image.changed {
        $0.replaceSubrange(start + 4..<start + 4100, with: database[page: number])
      }
      #expect(fixture.digest(files) == nil)
    }
  }

  /// Attacks that the format cannot detect, as `docs/explanation/threat-model.md` says.
  @Test func `an older version of a page, a file or a log is not detected`() throws {
    let fixture = try TamperingFixture()
    fixture.disk.load([:])
    let connection = try fixture.connect()
    try connection.run(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO t VALUES (1, 'old')")
    let older = fixture.disk.contents
    let oldDigest = try connection.digest()
    try connection.run("UPDATE t SET text = 'new'")
    let newer = fixture.disk.contents
    let path = fixture.path.string

    #expect(fixture.digest(older) == oldDigest, "the whole older file")
    var files = newer
    files[path]?[page: 2] = (older[path] ?? [])[page: 2]
    fixture.disk.load(files)
    #expect(
      try fixture.connect().run("SELECT text FROM t") == ["old"], "the older version of page 2")

    let log = try fixture.make(.log)
    files = log.files
    files[log.target] = nil
    #expect(fixture.digest(files).map(log.allowed.contains) == true, "a log that is gone")

    let journal = try fixture.make(.journal)
    files = journal.files
    files[journal.target] = nil
    #expect(fixture.digest(files) != nil, "a hot journal that is gone")
  }
}
