internal import SealedSQLite
internal import SealedVFS

/// The report of `database salvage`.
struct SalvageReport: Encodable {
  let file: String
  let newFile: String
  let isComplete: Bool
  let findings: Salvage

  init(file: String, newFile: String, _ findings: Salvage) {
    self.file = file
    self.newFile = newFile
    self.findings = findings
    isComplete = findings.isComplete
  }

  var text: String {
    var table = Table(header: ["TABLE", "ROWS", "LOST PAGES", "LOST ROWS"])
    for entry in findings.tables {
      let isWhole = entry.rowsLostAtLeast == 0 && entry.lostRanges.isEmpty
      table.append([
        entry.name, "\(entry.rowsCopied)", "\(entry.pagesLost)",
        isWhole ? "0" : "at least \(entry.rowsLostAtLeast)\(Self.list(entry.lostRanges))",
      ])
    }
    if let name = findings.lostAndFoundName {
      table.append([name, "\(findings.lostAndFoundRowCount)", "-", "of unknown tables"])
    }
    return table.text + remarks.map { "\($0)\n" }.joined()
  }

  private var remarks: [String] {
    var remarks: [String] = []
    if !findings.isSchemaWhole { remarks.append("a part of the schema is lost") }
    if !findings.areSettingsKept {
      remarks.append("text encoding, versions and auto-vacuum mode are lost: defaults were taken")
    }
    if !findings.areLogAndJournalWhole {
      remarks.append(
        "log or journal are damaged or foreign: rows can be missing, or of a transaction that "
          + "never ended")
    }
    if let tail = findings.discardedLogTail {
      remarks.append(
        "\(tail.frameCount) frames of the log, from frame \(tail.firstFrame) on, were not used: "
          + "torn by a power cut, or damaged")
    }
    return remarks
      + findings.notRecreated.map {
        "not made again: \($0.name.onOneLine): \($0.reason.onOneLine)"
      }
  }

  /// The first few ranges of rowids, and how many more there are.
  private static func list(_ ranges: [Salvage.RowIDRange]) -> String {
    if ranges.isEmpty { return "" }
    let shown = ranges.prefix(5).map {
      "\($0.first.map(String.init) ?? "")...\($0.last.map(String.init) ?? "")"
    }
    let rest = ranges.count - shown.count
    return ", among " + shown.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
  }
}
