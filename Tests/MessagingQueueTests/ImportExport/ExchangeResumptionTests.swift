import Foundation
import GRDB
import MessagingQueue
import SystemPackage
import Testing

/// Imports that stop in the middle, and the imports that follow them.
@Suite struct ExchangeResumptionTests {
  private static let id = String(repeating: "1f", count: 16)

  /// A file of many lines; its channel and ids name timetokens after its only message.
  private static func lines() -> [String] {
    var lines = [
      #"{"record":"export","version":1,"id":"\#(id)","source":"\#(id)","commitNumber":0,"highWater":"17000000000009999"}"#,
      #"{"record":"channel","channel":"c","removedThrough":"17000000000009999"}"#,
      #"{"record":"message","timetoken":"17000000000000000","channel":"c","payload":"one"}"#,
    ]
    for index in 1000..<5000 {
      lines.append(
        #"{"record":"deduplication","channel":"c","id":"id \#(index)","timetoken":"1700000000000\#(index)","until":"17000000000000000"}"#
      )
    }
    lines.append(#"{"record":"end","messages":1,"lines":\#(lines.count)}"#)
    return lines
  }

  @Test(arguments: [true, false])
  func `an import refuses a file that changes and continues after it is restored`(
    isCut: Bool
  ) async throws {
    let fixture = try await ExchangeFixture()
    let whole = Array(Self.lines().map { $0 + "\n" }.joined().utf8)
    try fixture.write(whole)
    let text = String(decoding: whole, as: UTF8.self)
    // The last lines are missing, or one line has another id.
    let changed =
      isCut
      ? Self.lines().dropLast(10).map { $0 + "\n" }.joined()
      : text.replacing("id 4999", with: "id 4xxx")
    let path = fixture.path
    let error = await #expect(throws: EngineError.self) {
      _ = try await fixture.targetEngine.importMessages(from: path) { progress in
        // The first lines are read for the second time.
        guard progress.completed > progress.total / 2 else { return }
        // Written in place, so that the open file changes.
        if let handle = FileHandle(forWritingAtPath: path.string) {
          try? handle.write(contentsOf: Data(changed.utf8))
          try? handle.truncate(atOffset: UInt64(changed.utf8.count))
          try? handle.close()
        }
      }
    }
    #expect(error?.code == .invalidFile)
    #expect(error?.message.contains("was changed while it was imported") == true)
    #expect(
      try fixture.target.number(
        "SELECT count(*) FROM import WHERE is_complete = 0 AND line_count > 0") == 1)
    #expect(try ExchangeFixture.faults(fixture.target) == [])

    try fixture.write(whole)
    let report = try await fixture.targetEngine.importMessages(from: path)
    #expect(report.messageCount == 1)
    #expect(report.resumedAfterLine > 0)
    #expect(try ExchangeFixture.faults(fixture.target) == [])
    let next = try await fixture.targetEngine.publish(
      Message(channel: try Channel("c"), payload: [2]))
    #expect(next.rawValue > 17_000_000_000_009_999)
  }

  /// Leaves the state of an unfinished import of an earlier export of the source.
  private static func begin(_ fixture: ExchangeFixture, lineCount: Int) throws {
    let source = try fixture.source.pool.read { db in
      try String.fetchOne(db, sql: "SELECT source FROM identity")
    }
    try fixture.target.pool.write { db in
      try db.execute(
        sql:
          "INSERT INTO import VALUES (?, ?, NULL, 0, 99999999999999999, ?, zeroblob(32), 0, 0, 0)",
        arguments: [id, source, lineCount])
    }
  }

  @Test func `an import that stored nothing blocks no other`() async throws {
    let fixture = try await ExchangeFixture.exported()
    try Self.begin(fixture, lineCount: 0)
    let report = try await fixture.targetEngine.importMessages(from: fixture.path)
    #expect(report.messageCount > 0)
  }

  @Test func `a partial import must be finished first`() async throws {
    let fixture = try await ExchangeFixture.exported()
    try Self.begin(fixture, lineCount: 1000)
    let error = await fixture.importError()
    #expect(error?.code == .alreadyExists)
    // The rest of the unfinished import would leave a gap.
    #expect(error?.message.contains("partly imported") == true)
  }
}
