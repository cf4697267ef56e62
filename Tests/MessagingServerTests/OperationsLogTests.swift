import AccessControl
import Foundation
import Logging
import NIOCore
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import MessagingServer

@Suite struct OperationsLogTests {
  private let folder = ScratchFolder()

  private func writer(_ format: LogFormat = .text) throws -> LineWriter {
    try LineWriter(folder("log"), format)
  }

  private func logger(_ format: LogFormat, to writer: LineWriter) -> Logger {
    Logger(label: "a.b") {
      LineLogHandler($0, format, logLevel: .notice, to: writer) {
        UTCTime(milliseconds: 1_769_846_400_007)
      }
    }
  }

  private var text: String { folder.contents(of: "log") ?? "" }

  private static let record = RequestRecord(
    route: .grant, method: "GET", application: try? ApplicationID(1042), status: 200,
    receivedByteCount: 300, sentByteCount: 20, time: .microseconds(1234), connection: 17)

  @Test func `LineWriter writes lines in order, and flush() waits for them`() async throws {
    let writer = try writer()
    for number in 0..<1000 { writer.write("\(number)") }
    await writer.flush(within: .seconds(60))
    #expect(text == (0..<1000).map { "\($0)\n" }.joined())
  }

  @Test func `LineWriter makes a file that only its owner reads`() throws {
    _ = try writer()
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.path("log"))
    #expect(attributes[.posixPermissions] as? Int == 0o600)
  }

  @Test func `LineWriter does not wait for a reader, and says how many lines it has dropped`()
    async throws
  {
    let (readEnd, writeEnd) = try FileDescriptor.pipe()
    let line = String(repeating: "x", count: 999)
    let writer = LineWriter(writeEnd, maximumByteCount: 100_000)
    // More than the pipe and the writer can hold.
    for _ in 0..<1000 { writer.write(line) }
    let output = Mutex<[UInt8]>([])
    let reader = Thread {
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      while let count = try? buffer.withUnsafeMutableBytes({ try readEnd.read(into: $0) }),
        count > 0
      {
        output.withLock { $0 += buffer.prefix(count) }
      }
    }
    reader.start()
    await writer.flush(within: .seconds(60))
    writer.write("last")
    await writer.flush(within: .seconds(60))
    try writeEnd.close()
    try await eventually { reader.isFinished }
    let lines = String(decoding: output.withLock(\.self), as: UTF8.self).split(separator: "\n")
    let kept = lines.filter { $0 == line }.count
    #expect(kept < 1000)
    // The writer's thread can begin late, and make room once.
    let dropped = lines.compactMap { line in
      line.wholeMatch(of: /(\d+) lines were dropped/).flatMap { Int($0.output.1) }
    }
    #expect(dropped.reduce(0, +) == 1000 - kept)
    #expect(lines.suffix(2).first?.hasSuffix("dropped") == true && lines.last == "last")
    try readEnd.close()
  }

  @Test func `LineWriter opens its file again after a rotation`() async throws {
    let writer = try writer()
    writer.write("one")
    await writer.flush(within: .seconds(60))
    try FileManager.default.moveItem(atPath: folder.path("log"), toPath: folder.path("log.1"))
    writer.write("two")
    await writer.flush(within: .seconds(60))
    try await writer.reopen()
    writer.write("three")
    await writer.flush(within: .seconds(60))
    #expect(folder.contents(of: "log.1") == "one\ntwo\n")
    #expect(text == "three\n")
  }

  @Test func `a line after a reopening is in the new file, though an earlier one is being written`()
    async throws
  {
    #expect(mkfifo(folder.path("log"), 0o600) == 0)
    let reader = try FileDescriptor.open(folder.path("log"), .readOnly, options: .nonBlocking)
    let writer = try writer()
    // More than a pipe holds.
    let long = String(repeating: "x", count: 1 << 20)
    var former: [UInt8] = []
    func read(atLeast byteCount: Int) async throws {
      try await eventually {
        while former.count < byteCount {
          var piece = [UInt8](repeating: 0, count: 1 << 10)
          let count = (try? piece.withUnsafeMutableBytes { try reader.read(into: $0) }) ?? 0
          former += piece.prefix(count)
          if count == 0 { return false }
        }
        return true
      }
    }
    writer.write(long)
    try await read(atLeast: 1)
    try FileManager.default.removeItem(atPath: folder.path("log"))
    try await writer.reopen()
    writer.write("new")
    try await read(atLeast: long.utf8.count + 1)
    await writer.flush(within: .seconds(60))
    #expect(former.count == long.utf8.count + 1)
    #expect(text == "new\n")
    try reader.close()
  }

  @Test func `LineWriter does not wait for the reader of a named pipe`() async throws {
    let writer = try writer()
    writer.write("one")
    await writer.flush(within: .seconds(60))
    try FileManager.default.removeItem(atPath: folder.path("log"))
    #expect(mkfifo(folder.path("log"), 0o600) == 0)
    await #expect(throws: Errno.noSuchAddressOrDevice) { try await writer.reopen() }
    #expect(throws: Errno.noSuchAddressOrDevice) { _ = try LineWriter(folder("log")) }
  }

  @Test func `LineWriter does not follow a symbolic link`() throws {
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("log"), withDestinationPath: folder.path("other"))
    #expect(throws: Errno.self) { try writer() }
  }

  @Test(arguments: [
    (LogFormat.text, "2026-01-31T08:00:00.007Z notice a.b: say c=d e=\"f \\\"g\\\"\"\n"),
    (.journal, "<5>a.b: say c=d e=\"f \\\"g\\\"\"\n"),
    (
      .json,
      #"{"time":"2026-01-31T08:00:00.007Z","level":"notice","logger":"a.b","message":"say","c":"d","e":"f \"g\""}"#
        + "\n"
    ),
  ])
  func `LineLogHandler writes a line in each format`(format: LogFormat, line: String) async throws {
    let writer = try writer()
    let logger = logger(format, to: writer)
    logger.notice("say", metadata: ["c": "d", "e": "f \"g\""])
    logger.info("not this")
    await writer.flush(within: .seconds(60))
    #expect(text == line)
  }

  @Test func `LineLogHandler lets no value begin a line`() async throws {
    let writer = try writer()
    logger(.text, to: writer).notice("a\nb", metadata: ["c": "d\r\ne\u{1B}[0m"])
    await writer.flush(within: .seconds(60))
    #expect(text.hasSuffix("a.b: a\u{FFFD}b c=d\u{FFFD}\u{FFFD}e\u{FFFD}[0m\n"))
  }

  @Test(arguments: [
    (Int64(0), "1970-01-01T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
    (1_709_251_199_999, "2024-02-29T23:59:59.999Z"), (-1, "1969-12-31T23:59:59.999Z"),
    (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
  ])
  func `UTCTime writes a moment`(milliseconds: Int64, text: String) {
    #expect(UTCTime(milliseconds: milliseconds).description == text)
  }

  @Test func `AccessLog writes one JSON object a request`() throws {
    let line = AccessLog.line(Self.record, at: UTCTime(milliseconds: 0))
    #expect(
      line
        == #"{"time":"1970-01-01T00:00:00.000Z","route":"/v2/auth/grant/sub-key/{sub}","method":"GET","#
        + #""application":1042,"status":200,"bytesIn":300,"bytesOut":20,"milliseconds":1.234,"connection":17}"#
    )
    #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any])
  }

  @Test func `AccessLog writes to a logger at the level debug`() async throws {
    let writer = try writer()
    var logger = logger(.text, to: writer)
    AccessLog(logger).write(Self.record)
    logger.logLevel = .debug
    AccessLog(logger).write(Self.record)
    await writer.flush(within: .seconds(60))
    #expect(text.contains("debug a.b: request application=1042 bytesIn=300"))
    #expect(text.split(separator: "\n").count == 1)
  }

  @Test func `AuditLog writes an act at the level notice, whatever the level of the log`()
    async throws
  {
    let writer = try writer()
    var logger = logger(.text, to: writer)
    logger.logLevel = .critical
    let audit = AuditLog(logger)
    audit.write(.lock)
    audit.write(.reloadCertificate, error: ServerError(.invalidCertificate, "no"))
    audit.write(Self.record)
    await writer.flush(within: .seconds(60))
    #expect(
      text.split(separator: "\n").map { $0.dropFirst(25) } == [
        "notice a.b: audit act=lock outcome=done",
        "notice a.b: audit act=reload-certificate error=no outcome=failed",
        "notice a.b: audit act=grant application=1042 connection=17 outcome=done status=200",
      ])
  }

  @Test
  func `AuditLog bounds the lines of group changes, counts the others, and keeps every grant`()
    async throws
  {
    let writer = try writer()
    let audit = AuditLog(logger(.text, to: writer))
    var record = Self.record
    record.route = .changeGroup
    for _ in 0..<1000 { audit.write(record, at: .uptimeNanoseconds(1_000_000_000_000)) }
    for _ in 0..<200 { audit.write(Self.record, at: .uptimeNanoseconds(1_000_000_000_000)) }
    audit.write(record, at: .uptimeNanoseconds(1_001_000_000_000))
    audit.write(record, at: .uptimeNanoseconds(1_002_000_000_000))
    await writer.flush(within: .seconds(60))
    let lines = text.split(separator: "\n")
    let changes = lines.filter { $0.contains("act=change-group") }
    #expect(changes.count == 102)
    #expect(lines.count { $0.contains("act=grant ") } == 200)
    #expect(changes.map { $0.contains("omitted=900") } == (0..<102).map { $0 == 100 })
    #expect(changes.count { $0.contains("omitted") } == 1)
  }

  @Test func `AuditLog writes no refused call, and one whose outcome the client does not know`()
    async throws
  {
    let writer = try writer()
    let audit = AuditLog(logger(.text, to: writer))
    var record = Self.record
    record.status = 403
    audit.write(record)
    record.status = RequestRecord.abandoned
    audit.write(record)
    record.route = .publish
    record.status = 200
    audit.write(record)
    await writer.flush(within: .seconds(60))
    #expect(text.split(separator: "\n").count == 1)
    #expect(text.contains("outcome=unknown status=499"))
  }
}
