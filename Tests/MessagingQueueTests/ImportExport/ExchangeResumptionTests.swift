import Foundation
import GRDB
import MessagingQueue
import SystemPackage
import Testing

/// Imports that stop in the midst, and what may follow them.
@Suite struct ExchangeResumptionTests {
  private static let id = String(repeating: "1f", count: 16)

  /// A file of many lines, whose channel and ids speak of timetokens behind its only message.
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
  func `a file that changes while it is imported is refused, and goes on when it is as it was`(
    isCut: Bool
  ) async throws {
    let bench = try await ExchangeFixture()
    let whole = Array(Self.lines().map { $0 + "\n" }.joined().utf8)
    try bench.write(whole)
    let text = String(decoding: whole, as: UTF8.self)
    // Its last lines are gone, or one has another id.
    let changed =
      isCut
      ? Self.lines().dropLast(10).map { $0 + "\n" }.joined()
      : text.replacing("id 4999", with: "id 4xxx")
    let path = bench.path
    let error = await #expect(throws: EngineError.self) {
      _ = try await bench.targetEngine.importMessages(from: path) { progress in
        // The first lines are read for the second time.
        guard progress.completed > progress.total / 2 else { return }
        // In place: the file that is read is another then.
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
      try bench.target.number(
        "SELECT count(*) FROM import WHERE is_complete = 0 AND line_count > 0") == 1)
    #expect(try ExchangeFixture.faults(bench.target) == [])

    try bench.write(whole)
    let report = try await bench.targetEngine.importMessages(from: path)
    #expect(report.messageCount == 1)
    #expect(report.resumedAfterLine > 0)
    #expect(try ExchangeFixture.faults(bench.target) == [])
    let next = try await bench.targetEngine.publish(
      Message(channel: try Channel("c"), payload: [2]))
    #expect(next.rawValue > 17_000_000_000_009_999)
  }

  /// As if an import of an earlier export of the source had been begun.
  private static func begin(_ bench: ExchangeFixture, lineCount: Int) throws {
    let source = try bench.source.pool.read { db in
      try String.fetchOne(db, sql: "SELECT source FROM identity")
    }
    try bench.target.pool.write { db in
      try db.execute(
        sql:
          "INSERT INTO import VALUES (?, ?, NULL, 0, 99999999999999999, ?, zeroblob(32), 0, 0, 0)",
        arguments: [id, source, lineCount])
    }
  }

  @Test func `an import that was begun and brought nothing is in nobody's way`() async throws {
    let bench = try await ExchangeFixture()
    try await bench.fill()
    _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    try Self.begin(bench, lineCount: 0)
    let report = try await bench.targetEngine.importMessages(from: bench.path)
    #expect(report.messageCount > 0)
  }

  @Test func `an import that brought a part is to be finished first`() async throws {
    let bench = try await ExchangeFixture()
    try await bench.fill()
    _ = try await bench.sourceEngine.exportMessages(to: bench.path)
    try Self.begin(bench, lineCount: 1000)
    let error = await #expect(throws: EngineError.self) {
      _ = try await bench.targetEngine.importMessages(from: bench.path)
    }
    #expect(error?.code == .alreadyExists)
    // The rest of what is there in part would leave a gap.
    #expect(error?.message.contains("in part") == true)
  }
}
