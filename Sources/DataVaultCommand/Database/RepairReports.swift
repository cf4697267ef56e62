internal import CommandInterface
internal import SealedVFS

/// The report of `database verify`.
struct VerificationOutput: Encodable {
  let file: String
  let isClean: Bool
  let findings: VerificationReport

  init(file: String, _ findings: VerificationReport) {
    self.file = file
    self.findings = findings
    isClean = findings.isClean
  }

  var text: String { text(verdict: verdict) }

  /// The same report with another verdict, where a command checks more than the file.
  func text(verdict: String) -> String {
    (["\(file.onOneLine): \(verdict)"] + pages + log + journal + contents + warnings)
      .map { "\($0)\n" }.joined()
  }

  private var verdict: String {
    if isClean { return "intact" }
    return findings.isAuthentic ? "authentic, but inconsistent" : "damaged"
  }

  private var pages: [String] {
    var lines = ["pages      \(findings.pageCount)"]
    if findings.isHeaderDamaged {
      lines.append("header     damaged, but the key opens the pages")
    }
    if findings.damagedPageCount > 0 {
      lines.append("damaged    \(Self.list(findings.damagedPages, of: findings.damagedPageCount))")
    }
    if findings.damagedFreePageCount > 0 {
      lines.append("free       \(findings.damagedFreePageCount) damaged pages that contain no data")
    }
    if findings.repairedPageCount > 0 {
      lines.append(
        "repaired   \(Self.list(findings.repairedPages, of: findings.repairedPageCount))"
          + ", by the log or the journal when the database is next opened for writing")
    }
    if findings.emptyPageCount > 0 {
      lines.append("empty      \(Self.list(findings.emptyPages, of: findings.emptyPageCount))")
    }
    if findings.missingPageCount > 0 {
      lines.append("missing    \(findings.missingPageCount) pages at the end")
    }
    return lines
  }

  private var log: [String] {
    let log = findings.log
    switch log.state {
    case .absent: return []
    case .empty:
      return log.discardedTail.map {
        ["log        damaged header: \($0.frameCount) frames are not used"]
      } ?? []
    case .foreign:
      return ["log        not a sealed log: the database cannot be opened while it exists"]
    case .sealed:
      let tail = log.discardedTail.map {
        "; \($0.frameCount) frames from frame \($0.firstFrame) are not used: cut off by a power "
          + "failure, or damaged"
      }
      return ["log        \(log.committedFrameCount) committed frames\(tail ?? "")"]
    }
  }

  private var journal: [String] {
    let journal = findings.journal
    switch journal.state {
    case .absent: return []
    case .finished where journal.lacksSuperJournal:
      return [
        "journal    of a transaction over several databases whose super-journal is missing: "
          + "taken for committed; \(journal.unusedRecordCount) records are not used"
      ]
    case .finished where journal.unusedRecordCount > 0:
      return [
        "journal    unreadable header: \(journal.unusedRecordCount) readable records after it "
          + "are not used"
      ]
    case .finished: return []
    case .inUse: return ["journal    of a transaction in progress"]
    case .hot:
      let damage =
        journal.damagedRecordCount > 0
        ? "; damaged: \(Self.list(journal.damagedRecords, of: journal.damagedRecordCount))" : ""
      return ["journal    \(journal.recordCount) records to roll back\(damage)"]
    case .damaged:
      let fault = journal.superJournalFault.map { ": \($0)" } ?? ""
      return ["journal    damaged, and the database needs it\(fault)"]
    case .foreign:
      return ["journal    not a sealed journal: the database cannot be opened while it exists"]
    }
  }

  /// Findings that lose no data now, although data could have been lost earlier.
  ///
  /// The exit code is 0.
  private var warnings: [String] {
    var lines: [String] = []
    if !findings.log.changedHeaderFrames.isEmpty {
      lines.append(
        "warning    the log's copies of page 1 have another file header, in frames "
          + Self.list(findings.log.changedHeaderFrames, of: findings.log.changedHeaderFrames.count)
          + ": the header was changed and is not used")
    }
    if !findings.journal.changedHeaderRecords.isEmpty {
      lines.append(
        "warning    the journal's copy of page 1 has another file header: it was changed and is "
          + "not used")
    }
    if let other = findings.log.otherGeneration {
      lines.append(
        "warning    the log holds \(other.commitCount) commits of another generation, of which the "
          + "database lacks \(other.missingPageCount) pages: the log's header was possibly changed"
      )
    }
    return lines
  }

  private var contents: [String] {
    let unchecked = findings.uncheckedTables.map { "unchecked  table \($0.onOneLine)" }
    switch findings.contentCheck {
    case .notAsked: return ["contents   not checked"]
    case .notPossible: return ["contents   not checked, because of the damage above"]
    case .done where findings.contentFaults.isEmpty:
      return ["contents   consistent"] + unchecked
    case .done: return findings.contentFaults.map { "contents   \($0.onOneLine)" } + unchecked
    }
  }

  /// The first twenty numbers, then how many more there are.
  private static func list(_ numbers: [some BinaryInteger], of count: Int) -> String {
    let shown = numbers.prefix(20)
    let rest = count - shown.count
    return shown.map { "\($0)" }.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
  }
}

/// The report of `database salvage`.
struct SalvageOutput: Encodable {
  let file: String
  let newFile: String
  let isComplete: Bool
  let findings: SalvageReport

  init(file: String, newFile: String, _ findings: SalvageReport) {
    self.file = file
    self.newFile = newFile
    self.findings = findings
    isComplete = findings.isComplete
  }

  var text: String {
    var rows = findings.tables.map { entry in
      let isWhole = entry.rowsLostAtLeast == 0 && entry.lostRanges.isEmpty
      return [
        entry.name, "\(entry.rowsCopied)", "\(entry.pagesLost)",
        isWhole ? "0" : Self.least(entry.rowsLostAtLeast) + Self.list(entry.lostRanges),
      ]
    }
    if let name = findings.lostAndFoundName {
      rows.append([name, "\(findings.lostAndFoundRowCount)", "-", "of unknown tables"])
    }
    return table(["TABLE", "ROWS", "LOST PAGES", "LOST ROWS"], rows)
      + remarks.map { "\($0)\n" }.joined()
  }

  private var remarks: [String] {
    var remarks: [String] = []
    if !findings.isSchemaWhole { remarks.append("part of the schema is lost") }
    if !findings.areSettingsKept {
      remarks.append("text encoding, versions and auto-vacuum mode are lost: defaults are used")
    }
    if !findings.areLogAndJournalWhole {
      remarks.append(
        "the log or the journal is damaged or foreign: rows can be missing, or belong to an "
          + "uncommitted transaction")
    }
    if let tail = findings.discardedLogTail {
      remarks.append(
        "\(tail.frameCount) frames of the log, from frame \(tail.firstFrame), were not used: "
          + "cut off by a power failure, or damaged")
    }
    if let other = findings.otherGeneration {
      remarks.append(
        "\(other.commitCount) commits of the log that its header hides were copied too: the header "
          + "could have been changed")
    }
    return remarks
      + findings.notRecreated.map {
        "not recreated: \($0.name.onOneLine): \($0.reason.onOneLine)"
      }
  }

  /// Where no row is known to be lost, an unreadable page could have held some.
  private static func least(_ count: Int) -> String {
    count == 0 ? "possibly some" : "at least \(count)"
  }

  /// The first five ranges of rowids, then how many more there are.
  private static func list(_ ranges: [SalvageReport.RowIDRange]) -> String {
    if ranges.isEmpty { return "" }
    let shown = ranges.prefix(5).map {
      "\($0.first.map(String.init) ?? "")...\($0.last.map(String.init) ?? "")"
    }
    let rest = ranges.count - shown.count
    return ", among " + shown.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
  }
}
