package import SystemPackage
package import VaultCrypto

extension SealedVFS {
  /// Reads every page of a database, every frame of its log and every record of a hot journal.
  ///
  /// Nothing on disk is changed or created. The memory does not grow with the size of the database.
  ///
  /// - Parameters:
  ///   - fileID: the id that the database must have, if the caller knows it. A header with another
  ///     id, or none, then counts as damage if a page opens. By default the header's own id is
  ///     used.
  ///   - checksContents: whether SQLite then checks that pages agree, if all of them are authentic.
  ///   - progress: called after each block of pages or frames. A page counts once for each time
  ///     that it is read.
  /// - Throws: `busy` while a connection in WAL mode is open, or one in rollback mode is writing;
  ///   `wrongKey`, `plainDatabase`, `notSealed`, `newerVersion`, `notFound`.
  package static func verify(
    _ path: FilePath, key: borrowing SecretBytes, fileID: [UInt8]? = nil,
    over base: String = "unix", checksContents: Bool = true,
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> VerificationReport {
    let image = try SealedImage(
      path, key: key, fileID: fileID, over: base, readingCount: checksContents ? 2 : 1,
      progress: progress)
    var verification = try VerificationReport(
      image, checksContents: checksContents, progress: progress)
    if checksContents {
      try verification.checkContents(of: image, progress: progress)
    }
    try image.requireWorkingCipher()
    return verification
  }
}

extension VerificationReport {
  /// The most empty or damaged pages to remember until the list of free pages is read.
  private static let suspectLimit = 65_536

  init(
    _ image: SealedImage, checksContents: Bool, progress: (PageProgress) -> Void
  ) throws(SealedDatabaseError) {
    isHeaderDamaged = image.isHeaderDamaged
    log = image.log.report
    log.otherGeneration = try image.otherGeneration()?.report
    journal = image.journal.report
    pageCount = Int(image.filePageCount) + (image.trailingByteCount > 0 ? 1 : 0)
    databasePageCount = Int(image.pageCount)
    trailingByteCount = image.trailingByteCount
    let total = log.frameCount + Int(image.filePageCount) * (checksContents ? 2 : 1)
    var done = log.frameCount
    var empty: Set<UInt32> = []
    var damaged: Set<UInt32> = []
    var unremembered = 0
    PageScan().run(image) { count in
      done += count
      progress(PageProgress(completedPageCount: done, pageCount: total))
    } _: { number, reading in
      guard number <= image.pageCount else { return }
      switch reading {
      case .whole, .missing: break
      case .damaged where image.isCovered(number): note(damaged: number, isRepaired: true)
      case .damaged where damaged.count < Self.suspectLimit: damaged.insert(number)
      case .damaged: note(damaged: number, isRepaired: false)
      case .empty where image.isCovered(number): break
      case .empty where empty.count < Self.suspectLimit: empty.insert(number)
      case .empty: unremembered += 1
      }
    }
    noteMissing(image)
    if !empty.isEmpty || !damaged.isEmpty {
      let free = FreePages(where: { empty.contains($0) || damaged.contains($0) }) { image.page($0) }
      empty.subtract(free.pages)
      damagedFreePageCount = damaged.intersection(free.pages).count
      damaged.subtract(free.pages)
    }
    emptyPages = Array(empty.sorted().prefix(Self.listLimit))
    emptyPageCount = empty.count + unremembered
    note(damaged: damaged)
  }

  /// Lets SQLite check the pages, if it can read them all.
  mutating func checkContents(
    of image: SealedImage, progress: (PageProgress) -> Void
  ) throws(SealedDatabaseError) {
    let total = log.frameCount + Int(image.filePageCount) * 2
    defer { progress(PageProgress(completedPageCount: total, pageCount: total)) }
    guard isAuthentic else {
      contentCheck = .notPossible
      return
    }
    var done = total - Int(image.filePageCount)
    let check = try ContentCheck(image) {
      // Log or journal can hold pages that the file lacks. SQLite compares rows at the end.
      guard done < total - 1 else { return }
      done += 1
      if done % 128 == 0 { progress(PageProgress(completedPageCount: done, pageCount: total)) }
    }
    contentCheck = .done
    contentFaults = check.faults
    uncheckedTables = check.uncheckedTables
  }

  /// Adds pages to those that are repaired or were too many to remember, and keeps the lists
  /// sorted.
  private mutating func note(damaged numbers: Set<UInt32>) {
    damagedPageCount += numbers.count
    damagedPages = Array(
      (damagedPages + numbers.sorted().prefix(Self.listLimit)).sorted().prefix(Self.listLimit))
  }

  private mutating func note(damaged number: UInt32, isRepaired: Bool) {
    damagedPageCount += 1
    if damagedPages.count < Self.listLimit { damagedPages.append(number) }
    guard isRepaired else { return }
    repairedPageCount += 1
    if repairedPages.count < Self.listLimit { repairedPages.append(number) }
  }

  /// Counts pages that belong after the end of the file and that log and journal lack.
  private mutating func noteMissing(_ image: SealedImage) {
    guard image.pageCount > image.filePageCount else { return }
    let missing = (image.filePageCount + 1)...image.pageCount
    let held = Set(image.log.frames.keys).union(image.journal.records.keys)
    missingPageCount =
      missing.count - held.count(where: missing.contains)
      - (missing.contains(PageLayout.lockPageNumber) ? 1 : 0)
    // A rollback makes the file as long as it was: what it leaves empty is no loss where nothing was.
    guard let rolledBack = image.journal.pageCount, missingPageCount > 0 else { return }
    let free = FreePages(where: {
      $0 <= rolledBack && missing.contains($0) && !held.contains($0)
    }) { image.page($0) }
    missingPageCount -= free.pages.count
  }
}
