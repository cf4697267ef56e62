internal import CSQLite

extension MainFile {
  /// Seals a page and writes it, or copies it where a checkpoint has it sealed already.
  func writeSealed(_ number: UInt32, from source: UnsafeRawPointer) -> Int32 {
    if isCheckpointing && !knowsPageOne { return SQLITE_BUSY }  // see mustKeepLog
    if !isHeaderOnDisk {
      let result = settleIdentity()
      guard result == SQLITE_OK else { return result }
    }
    let offset = PageLayout.offset(ofPage: number)
    if let page = checkpointed {
      checkpointed = nil
      if isCheckpointing, unsafe page.isWhat(source, isWrittenAs: number) {
        return write(page, at: offset)
      }
    }
    if number == 1 {
      if unsafe !codec.hasRoom(in: source) { return fail(.reserveInUse, SQLITE_IOERR_WRITE) }
      knowsPageOne = true
      unsafe notePageCount(page: source)
    }
    guard
      unsafe keys.page.seal(source, number: number, into: sealed.pointer, nonces: &nonces)
    else { return fail(.reserveInUse, page: number, SQLITE_IOERR_WRITE) }
    return unsafe base.write(sealed.pointer, PageLayout.byteCount, at: offset)
  }

  /// Copies a sealed page of the log into the database.
  ///
  /// Page 1 was opened under this file's header, whatever the 16 clear bytes of its frame say: they are
  /// not authenticated there, and would become the header of the database.
  private func write(_ page: CheckpointedPage, at offset: Int64) -> Int32 {
    guard page.number == 1 else {
      return unsafe base.write(page.sealed, PageLayout.byteCount, at: offset)
    }
    unsafe sealed.pointer.copyMemory(from: page.sealed, byteCount: PageLayout.byteCount)
    unsafe sealed.pointer.copyMemory(from: codec.identity, byteCount: SealedHeader.byteCount)
    return unsafe base.write(sealed.pointer, PageLayout.byteCount, at: offset)
  }

  /// Makes the file's identity durable before its first page is written.
  ///
  /// Whoever rolls an interrupted first transaction back must know the file id, and a power cut may
  /// keep any of its pages without page 1: hence the sync, once in the life of a file.
  private func settleIdentity() -> Int32 {
    var byteCount: Int64 = 0
    var result = unsafe base.sealedByteCount(&byteCount)
    guard result == SQLITE_OK else { return result }
    if byteCount > 0 { return unsafe checkHeader(nil) }  // another connection was first
    let bytes = codec.identity
    unsafe opened.pointer.copyMemory(from: bytes, byteCount: bytes.count)
    result = unsafe base.write(opened.pointer, bytes.count, at: 0)
    guard result == SQLITE_OK else { return result }
    result = base.synchronize(SQLITE_SYNC_NORMAL)
    isHeaderOnDisk = result == SQLITE_OK
    return result
  }
}
