package import FileLayer
package import SealedVFS
package import SystemPackage
package import VaultCrypto

extension SealedVFS {
  /// Pages that are read between two calls of `progress`.
  private static let pagesPerStep = 128

  /// Copies all rows that can still be reached into a new database.
  ///
  /// The source is not changed. The new database is written under a temporary name and, once
  /// complete, renamed durably.
  ///
  /// - Parameters:
  ///   - fileID: the id that the source must have; nil takes the id that its header states.
  ///   - destination: the path of the new database, which must be free.
  ///   - knownTables: tables that the database must have; see ``KnownTable``.
  ///   - progress: called while pages of the source are read, on the same thread.
  package static func salvage(
    from source: FilePath, key: borrowing SecretBytes, fileID: [UInt8]? = nil,
    to destination: FilePath, newKey: borrowing SecretBytes, knownTables: [KnownTable] = [],
    over base: String = "unix", fileSystem: any FileSystem = LinuxFileSystem(),
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) -> SalvageReport {
    let side = try AtomicFileReplacement(newAt: destination, fileSystem)
    return try withoutActuallyEscaping(progress) { progress throws(SealedDatabaseError) in
      let image = try SealedImage(source, key: key, fileID: fileID, over: base, progress: { _ in })
      // Only users who can use the source get access.
      let lock = try side.claim(like: source)
      defer { lock.release() }
      do throws(SealedDatabaseError) {
        let report = try copy(
          image, to: side.path, key: newKey, knownTables, over: base, progress)
        try side.requireFreePlace()
        try side.putInPlace()
        return report
      } catch {
        side.discard()
        throw error
      }
    }
  }

  /// Writes the temporary file, and closes its connection before it returns.
  private static func copy(
    _ image: SealedImage, to side: FilePath, key: borrowing SecretBytes,
    _ knownTables: [KnownTable], over base: String, _ progress: @escaping (PageProgress) -> Void
  ) throws(SealedDatabaseError) -> SalvageReport {
    let database = try NewDatabase(at: side, key: key, over: base)
    let otherGeneration = try image.followOtherGeneration()
    let pageCount = Int(image.pageCount)
    var readCount = 0
    let pages = PageSource(pageCount: image.pageCount) { number in
      readCount += 1
      if readCount % pagesPerStep == 0 {
        progress(
          PageProgress(completedPageCount: min(readCount, pageCount), pageCount: pageCount))
      }
      return image.page(number)
    }
    var salvager = Salvager(pages, into: database, knownTables: knownTables)
    var report = try salvager.run()
    try image.requireWorkingCipher()
    report.areLogAndJournalWhole = image.areLogAndJournalWhole
    report.discardedLogTail = image.discardedLogTail
    report.otherGeneration = otherGeneration
    return report
  }
}
