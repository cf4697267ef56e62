import DataVault
import Foundation
import MessagingQueue
import SystemPackage
import VaultedDatabase

/// What a publish of 1 KiB writes, one by one, beside a bare insert on a plain file.
enum PublishWrites {
  static let name = "publish one by one: what it writes"

  /// Fewer than a checkpoint copies, so that the log only grows.
  private static let count = 150

  static func measure(folder: FilePath) async throws -> [ResultRow] {
    let engine = try await MessagingEngine.start(DataVaultHome(folder))
    let message = Message(channel: try Channel("c"), payload: [UInt8](repeating: 7, count: 1024))
    try await engine.publish(message)
    let log = folder.appending("messaging.db-wal")
    let before = try Written(log)
    for _ in 0..<count { try await engine.publish(message) }
    let ours = try Written(log) - before
    try await engine.stop()

    let plain = folder.appending("plain.db")
    let connection = try SQLiteConnection(plain, isSealed: false)
    for sql in ["PRAGMA journal_mode = WAL"] + BareInserts.recipe.schema
      + BareInserts.recipe.settings
    {
      try connection.execute(sql)
    }
    let next = try connection.run(BareInserts.pass(count: 1), countingFrom: 1)
    let plainLog = FilePath(plain.string + "-wal")
    let beforeBare = try Written(plainLog)
    _ = try connection.run(BareInserts.pass(count: count), countingFrom: next)
    let bare = try Written(plainLog) - beforeBare
    return [
      row("log frames", ours.logByteCount / frameByteCount, bare.logByteCount / frameByteCount),
      row("bytes", ours.byteCount, bare.byteCount),
      row("write calls", ours.callCount, bare.callCount),
    ]
  }

  /// A frame's header and page; a sealed page has the same size.
  private static let frameByteCount = 24.0 + 4096

  private static func row(_ what: String, _ ours: Double, _ bare: Double) -> ResultRow {
    func each(_ sum: Double) -> String { Spread.text(sum / Double(count)) }
    return ResultRow(
      name: "publish one by one: \(what); bare insert", figure: "\(each(ours)); \(each(bare))",
      spread: "", goal: Goal.none.description, result: .none)
  }

  /// What this process has written until now, and the size of a log.
  private struct Written {
    var logByteCount: Double
    var byteCount: Double
    var callCount: Double

    init(_ log: FilePath) throws {
      let attributes = try FileManager.default.attributesOfItem(atPath: log.string)
      logByteCount = (attributes[.size] as? NSNumber)?.doubleValue ?? 0
      // https://docs.kernel.org/filesystems/proc.html#proc-pid-io-display-the-io-accounting-fields
      let lines = try String(contentsOfFile: "/proc/self/io", encoding: .utf8).split(
        separator: "\n")
      func value(_ key: String) throws -> Double {
        let line = lines.first { $0.hasPrefix(key) }
        guard let value = line.flatMap({ Double($0.dropFirst(key.count)) }) else {
          throw BenchmarkError("/proc/self/io has no \(key)")
        }
        return value
      }
      byteCount = try value("wchar: ")
      callCount = try value("syscw: ")
    }

    private init(logByteCount: Double, byteCount: Double, callCount: Double) {
      self.logByteCount = logByteCount
      self.byteCount = byteCount
      self.callCount = callCount
    }

    static func - (left: Written, right: Written) -> Written {
      Written(
        logByteCount: left.logByteCount - right.logByteCount,
        byteCount: left.byteCount - right.byteCount, callCount: left.callCount - right.callCount)
    }
  }
}
