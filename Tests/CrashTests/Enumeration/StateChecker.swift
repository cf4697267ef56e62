import FaultVFS
import SealedVFS
import SystemPackage
import VaultCrypto

/// Opens a disk after a power cut and compares the database's contents with those noted during the
/// work.
final class StateChecker {
  enum Verdict: Equatable {
    case right
    case lost(String)
    case wrong(String)
  }

  private let work: RecordedWork
  private let form: FileForm
  private let disk = MemoryDisk()
  private var registration: KeyRegistration?
  private var registeredKey: [UInt8]?
  private let attachedRegistration: KeyRegistration?
  private var stateCount = 0

  /// One in this many states is verified, before and after SQLite recovers it.
  private static let verifiedShare = 4

  init(work: RecordedWork, form: FileForm) throws {
    self.work = work
    self.form = form
    let name = disk.name
    attachedRegistration = try work.attached.flatMap { try form.register($0, over: name) }
  }

  /// The state must be the last acknowledged one or the next one.
  func check(_ files: [String: [UInt8]], acknowledged: Int, canForget: Bool) -> Verdict {
    disk.load(files)
    defer { disk.load([:]) }
    do {
      let isChanged = try isUnderLaterKey(files)
      let key = work.keys[isChanged ? 1 : 0]
      stateCount += 1
      let isVerified = form == .sealed && stateCount % Self.verifiedShare == 0
      let unclean = isVerified ? try verify(files, key: key, "as the cut left it") : nil
      let found = try contents(key: key)
      if let unclean { return .wrong(unclean) }
      if isVerified, let unclean = try verify(disk.contents, key: key, "recovered") {
        return .wrong(unclean)
      }
      if work.keys.count > 1 && acknowledged > 0 && !isChanged {
        return .lost("the acknowledged key")
      }
      let allowed = work.contents[acknowledged...min(acknowledged + 1, work.contents.count - 1)]
      if allowed.contains(found) { return .right }
      let isEarlier = work.contents[..<acknowledged].contains(found)
      if isEarlier { return canForget ? .right : .lost("an earlier state is there") }
      return .wrong("this was never a state")
    } catch let failure {
      return .lost("\(failure)")
    }
  }

  /// The faults that verification finds in a state that lost nothing; nil for none.
  private func verify(_ files: [String: [UInt8]], key: [UInt8], _ when: String) throws -> String? {
    for path in [work.database, work.attached].compactMap(\.self) {
      // The file was not written yet, or the journal promises to remove it.
      guard let file = files[path.string], !file.isEmpty else { continue }
      do throws(SealedDatabaseError) {
        let key = SecretBytes(copying: key)
        let found = try SealedVFS.verify(path, key: key, over: disk.name)
        // Verification must not report a cut as an attack.
        let hasWarning = found.log.otherGeneration != nil || !found.log.changedHeaderFrames.isEmpty
        if !found.isClean || hasWarning { return "\(when), verification is not clean: \(found)" }
      } catch {
        // A hot journal from before the first page; the check of the contents decides whether it is
        // correct.
        if error.code != .notFound { throw error }
      }
    }
    return nil
  }

  private func contents(key: [UInt8]) throws -> Int {
    if registeredKey != key {
      registration = try form.register(work.database, over: disk.name, key: key)
      registeredKey = key
    }
    do {
      let connection = try form.open(work.database, over: disk.name)
      return try withExtendedLifetime(attachedRegistration) {
        if let attached = work.attached { try connection.run("ATTACH '\(attached)' AS s") }
        let integrity = try connection.run("PRAGMA integrity_check")
        guard integrity == ["ok"] else {
          throw CrashTestError("integrity: \(integrity.first ?? "")")
        }
        return try connection.digest()
      }
    } catch {
      throw CrashTestError("\(error), \(registration?.fault.map(\.description) ?? "no fault")")
    }
  }

  /// Which of two keys a state is under, by the clear header.
  private func isUnderLaterKey(_ files: [String: [UInt8]]) throws -> Bool {
    guard work.keys.count > 1, let start = files[work.database.string]?.prefix(16),
      let before = work.initial[work.database]?.prefix(16)
    else { return false }
    return start != before
  }
}
