internal import DataVault
internal import MessagingQueue
internal import MessagingQueueLifecycle

/// Keeps what clients hand in.
struct Ingest: Sendable {
  let messages: MessagingService
  let channel: Channel
  let vault: Vault

  /// Publishes requests that came together in one commit; they are on the disk when it returns.
  ///
  /// - Returns: their timetokens.
  func publish(_ requests: [Request]) async throws(Refusal) -> [String] {
    // Not `engine()`, which waits for the unlock: a client is told at once.
    guard let engine = messages.runningEngine else {
      throw Refusal(await vault.isLocked ? "locked" : "starting")
    }
    do throws(EngineError) {
      return try await engine.publish(requests.map(message)).map(\.description)
    } catch {
      throw Refusal(error.code == .vaultLocked ? "locked" : error.code.description)
    }
  }

  private func message(_ request: Request) -> Message {
    var message = Message(
      channel: channel, payload: request.payload, headers: ["id": request.id])
    // Who has lost an answer sends the line again, and it is kept once.
    message.deduplicationID = request.id
    return message
  }
}
