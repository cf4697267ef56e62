public import SystemPackage

extension MessagingEngine {
  /// Writes messages, and what their consumers have done with them, into a file of JSON lines:
  /// `docs/message-export.md`.
  ///
  /// **The file is plaintext.** It is mode 0600, written as `PATH.partial`, and gets its name when it is
  /// whole; on return it is on the disk. Killed or failed in the midst, the same call goes on behind the
  /// last message that is whole. One snapshot is read, beside whoever works.
  ///
  /// - Parameters:
  ///   - selection: which; all by default.
  ///   - progress: told of messages written, now and then, on a thread of the export's own.
  /// - Throws: `alreadyExists`; `foreignFile` where `PATH.partial` is not this user's alone; `channelMissing`; `busy` while another export writes the same file;
  ///   `diskFull`, `inputOutput`, `stopped`, `vaultLocked`, `damaged`.
  public nonisolated func exportMessages(
    _ selection: MessageSelection = MessageSelection(), to path: FilePath,
    progress: @escaping @Sendable (ExchangeProgress) -> Void = { _ in }
  ) async throws(EngineError) -> ExportReport {
    try await ExchangeWorker().export(selection, of: running().tables, to: path, progress: progress)
  }

  /// The same lines for whoever takes them, in whole lines of about 256 KiB together; nothing can be
  /// resumed.
  ///
  /// - Parameter write: called on a thread that may block.
  /// - Throws: what `write` throws, if it is an ``EngineError``, and as above.
  public nonisolated func exportMessages(
    _ selection: MessageSelection = MessageSelection(),
    progress: @escaping @Sendable (ExchangeProgress) -> Void = { _ in },
    write: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws(EngineError) -> ExportReport {
    try await ExchangeWorker().export(
      selection, of: running().tables, progress: progress, write: write)
  }
}
