import CoreMetrics
import DataVault
import Foundation
import MessagingQueue
import MetricsTestKit
import TestSupport
import Testing

/// `docs/reference/observation.md` lists all metrics and log lines of an engine, and nothing else.
@Suite struct ObservationDocumentationTests {
  /// The cells of each row of a table whose first cell begins with `prefix`.
  private static func rows(_ prefix: String) throws -> [[String]] {
    try Repository.text("docs/reference/observation.md").split(separator: "\n")
      .filter { $0.hasPrefix("| \(prefix)") }
      .map { row in
        row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      }
  }

  @Test func `the page lists each metric with its kind and its dimensions, and no other`()
    async throws
  {
    let observed = try await ObservedEngine { $0.channelMetrics = .all() }
    let channel = try Channel("orders")
    try await observed.publish("a", to: channel)
    _ = try await observed.engine.receive(from: channel)
    try await observed.engine.observe()

    let metrics = observed.metrics
    var emitted = Set(metrics.counters.map { "`\($0.label)` counter" })
    emitted.formUnion(metrics.timers.map { "`\($0.label)` timer" })
    for recorder in metrics.recorders {
      let dimensions = recorder.dimensions.map { "`\($0.0)`" }.joined(separator: ", ")
      // A gauge is a recorder that does not aggregate.
      emitted.insert(
        recorder.aggregate
          ? "`\(recorder.label)` recorder" : "`\(recorder.label)` gauge \(dimensions)")
    }
    // WorkerTests checks the metrics of jobs.
    let rows = try Self.rows("`datavault_").filter { !$0[0].contains("job") }
    let listed = rows.map { cells in
      [cells[0], cells[1], cells[1] == "gauge" ? cells[3] : nil].compactMap { $0 }
        .joined(separator: " ")
    }
    #expect(Set(listed).count == listed.count)
    #expect(Set(listed).subtracting(emitted) == [], "listed, but not emitted")
    #expect(emitted.subtracting(listed) == [], "emitted, but not listed")
  }

  @Test func `the unit of each metric is the last word of its name`() throws {
    for cells in try Self.rows("`datavault_") {
      let name = cells[0].dropFirst().dropLast()
      let last = name.split(separator: "_").last ?? ""
      #expect(cells[1] == "counter" ? last == "total" : last == cells[2], "\(name): \(cells[2])")
    }
  }

  @Test func `the page lists every line that an engine logs, with its level`() async throws {
    let place = EngineHome()
    let log = RecordingLog()
    let vault = try await place.makeVault()
    for isLocked in [false, true] {
      let engine = try await place.start(vault) {
        $0.logger = log.logger
        $0.anchorCommitCount = 1
        $0.maintenanceInterval = .milliseconds(1)
      }
      try await engine.publish(Message(channel: .orders, payload: [1]))
      try await eventually { log.messages.contains { $0.contains("maintenance: removed") } }
      if isLocked { await vault.lock() } else { try await engine.stop() }
    }
    let rows = try ["debug", "info", "notice", "warning"].map { try Self.rows($0) }.joined()
    // An ellipsis stands for a variable part.
    let listed = rows.map { cells -> (level: String, parts: [String]) in
      let parts = cells[1].dropFirst().dropLast().components(separatedBy: "…")
      return (cells[0], parts.filter { !$0.isEmpty })
    }
    #expect(log.messages.count > 8)
    for line in log.messages {
      #expect(
        listed.contains { row in
          line.hasPrefix("\(row.level) ") && row.parts.allSatisfy { line.contains($0) }
        }, "\(line)")
    }
  }
}
