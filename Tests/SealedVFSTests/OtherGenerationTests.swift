import FaultVFS
import SealedVFS
import Testing

/// A log whose header names another generation than its frames: an attack, or a restart.
@Suite struct OtherGenerationTests {
  /// A database killed after three commits into a log.
  private func killed(afterwards sql: String = "") throws -> TemporaryDatabase {
    try .killed { connection in
      for commit in 1...3 { try connection.fill(10, from: 60 + commit * 10) }
      try connection.run(sql)
    }
  }

  private func log(_ place: TemporaryDatabase) throws -> VerificationReport.Log {
    let found = try place.verify()
    #expect(found.isClean)
    return found.log
  }

  @Test(arguments: [3, 16, 19, 23])
  func `verify reports commits that a changed log header hides`(byte: Int) throws {
    let place = try killed()
    let whole = try log(place)
    #expect(whole.committedFrameCount > 0 && whole.otherGeneration == nil)
    try place.changeLogHeader { header in
      header[byte] ^= 1
      header[20] ^= 1
    }
    let found = try log(place)
    #expect(found.committedFrameCount == 0 && found.staleFrameCount == whole.frameCount)
    let other = try #require(found.otherGeneration)
    #expect(other.commitCount == 3 && other.frameCount == whole.committedFrameCount)
    #expect(other.missingPageCount > 0)
    #expect(try place.query("SELECT count(*) FROM t") == "60")
  }

  @Test(arguments: [false, true])
  func `verify reports no hidden commits if the database holds all frames`(
    areHalfOverwritten: Bool
  ) throws {
    let place = try killed(afterwards: "PRAGMA wal_checkpoint(FULL)")
    let last = try log(place).committedFrameCount - 1
    try place.changeLogHeader { $0[19] ^= 1 }
    if areHalfOverwritten {
      // A power cut: the next generation's header and some sectors of its frames reached the disk,
      // none of their headers.
      try place.change(place.log) { $0[32 + last * 4120 + 24 + 600] ^= 1 }
    }
    let found = try log(place)
    #expect(found.staleFrameCount == found.frameCount && found.frameCount > 3)
    #expect(found.otherGeneration == nil)
  }

  @Test func `verify does not report an uncommitted transaction as hidden commits`() throws {
    let place = try killed()
    try place.changeLogHeader { $0[19] ^= 1 }
    let other = try #require(try log(place).otherGeneration)
    // Keep only frame 1, which has no commit.
    try place.change(place.log) { log in
      if Array(log[36..<40]) == [0, 0, 0, 0] { log.removeLast(log.count - 32 - 4120) }
    }
    #expect(other.frameCount > 1)
    let cut = try log(place)
    #expect(cut.frameCount == 1 && cut.otherGeneration == nil)
  }
}
