internal import DataVault
internal import MessagingQueue
internal import MessagingQueueLifecycle

/// Publishes the messages of clients.
struct Ingest: Sendable {
  let messages: MessagingService
  let channel: Channel
  let vault: Vault

  /// Publishes requests in one commit.
  ///
  /// They are on the disk when it returns.
  ///
  /// - Returns: their timetokens.
  func publish(_ requests: [Request]) async throws(Refusal) -> [String] {
    // `engine()` would wait for the unlock, but a client needs an immediate answer.
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
    // A client that has lost an answer sends the line again. The message is stored once.
    message.deduplicationID = request.id
    return message
  }
}
