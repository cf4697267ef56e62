import CHeapUse
import Foundation
import GRDBSQLite
import SystemPackage

/// The memory of a sealed database beyond that of SQLite, for a small and a large file.
///
/// Each figure comes from its own process. It covers the time from before the first opening,
/// including that of OpenSSL, to after a scan of all rows. It counts locked pages and the bytes of
/// malloc without SQLite's.
enum MemoryCost {
  /// The first argument of such a process.
  ///
  /// "sealed" or "plain", the path and the row count follow.
  static let argument = "--memory"
  private static let roundCount = 3
  private static let goalByteCount = 1 << 20

  static func measure(folder: FilePath) throws -> [ResultRow] {
    var small: [Double] = []
    var large: [Double] = []
    for round in 0..<roundCount {
      func extra(_ rowCount: Int) throws -> Double {
        let path = folder.appending("\(rowCount)-\(round)")
        let sealed = try run("sealed", path, rowCount: rowCount)
        return Double(sealed - (try run("plain", path, rowCount: rowCount))) / 1024
      }
      small.append(try extra(100))
      large.append(try extra(60_000))
    }
    return [
      ResultRow(
        "memory of our own, 78 MiB read", Spread(large), unit: "KiB",
        goal: .atMost(Double(goalByteCount / 1024))),
      ResultRow(
        "memory grown with the database", Spread(zip(large, small).map { $0 - $1 }), unit: "KiB",
        goal: .atMost(4)),
    ]
  }

  private static func run(_ kind: String, _ folder: FilePath, rowCount: Int) throws -> Int {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = [argument, kind, folder.string, "\(rowCount)"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard let count = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      throw BenchmarkError("no memory figure: \(text)")
    }
    return count
  }

  /// Runs the measurement in such a process.
  static func measureHere(_ arguments: [String]) throws {
    guard arguments.count == 5, let rowCount = Int(arguments[4]) else {
      throw BenchmarkError("usage: \(argument) sealed|plain FOLDER ROWS")
    }
    let folder = FilePath(arguments[3]).appending(arguments[2])
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let contestant = SQLiteContestant(folder: folder, isSealed: arguments[2] == "sealed")
    let large = Workload.large
    let recipe = DatabaseRecipe(
      name: large.name, schema: large.schema,
      fill: large.fill.map {
        Pass(statements: $0.statements, count: rowCount, countPerTransaction: 1000)
      }, settings: large.settings)
    let scan = Pass(statements: ["SELECT sum(length(payload)) FROM message"], count: 1)
    _ = Cost.of {}
    let before = try use()
    try contestant.prepare(recipe)
    _ = try contestant.run(scan, on: recipe, as: .pass)
    print(try use() - before)
  }

  private static func use() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let locked =
      status.split(separator: "\n").first { $0.hasPrefix("VmLck:") }
      .flatMap { $0.split(separator: " ").dropFirst().first }.flatMap { Int($0) } ?? 0
    return heap_use() - Int(sqlite3_memory_used()) + locked * 1024
  }
}
