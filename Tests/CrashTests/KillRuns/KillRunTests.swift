import Foundation
import TestSupport
import Testing

/// `make crash` runs these with `DATAVAULT_KILL_RUNS=200`; the default is a few.
@Suite struct KillRunTests {
  @Test(.enabled(if: Program.sqlite3 != nil, "the stock sqlite3 shell is not installed"))
  func `kill -9 at a random moment of publishing loses no acknowledged message`() async throws {
    let count: Int = setting("DATAVAULT_KILL_RUNS") ?? 5
    let seed = SeededRandom.killSeed()
    let totals = try await KillRuns(seed: seed)(count: count)
    print("\(totals.summary), seed: \(seed)")
    #expect(totals.findings == [])
    #expect(totals.lost == 0)
    #expect(totals.runs == count)
  }

  @Test func `the search finds a text at any place in a file`() throws {
    let folder = ScratchFolder()
    mkdir(folder.path("vaults"), 0o700)
    let noise = (0..<10_000).map { _ in UInt8.random(in: 128...255) }
    try folder.file("vaults/a", noise + NumberedLines(run: 1).line(7) + noise)
    try folder.file("b", noise)

    let hits = try FileSearch(texts: [NumberedLines.canary]).hits(in: folder.url)

    #expect(hits == ["a: \(String(decoding: NumberedLines.canary, as: UTF8.self))"])
  }

  @Test func `lines are counted up to the first that is missing, changed or out of order`() {
    let lines = NumberedLines(run: 3)
    func output(_ numbers: [Int]) -> [UInt8] {
      numbers.flatMap { lines.line($0) + [UInt8(ascii: "\n")] }
    }
    #expect(lines.count(in: output([0, 1, 2])) == (3, 3))
    #expect(lines.count(in: output([0, 2, 1])) == (1, 3))
    #expect(lines.count(in: output([])) == (0, 0))
    #expect(lines.count(in: output([0, 1]).dropLast()) == (1, 1))
  }
}
