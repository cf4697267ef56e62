internal import DataVault
internal import MessagingQueue
internal import MessagingQueueLifecycle

/// Publishes the lines of clients, and answers each.
struct Ingest: Sendable {
  let messages: MessagingService
  let channel: Channel
  let vault: Vault
  let maximumPayloadByteCount: Int

  /// Publishes lines in one commit; a line that is answered with `ok` is on the disk.
  func answers(to lines: [Line]) async -> [String] {
    var requests = lines.map { Request($0, maximumPayloadByteCount: maximumPayloadByteCount) }
    let accepted = requests.indices.filter { requests[$0].refusal == nil }
    do throws(Refusal) {
      let timetokens = try await publish(accepted.map { requests[$0] })
      for (index, timetoken) in zip(accepted, timetokens) { requests[index].timetoken = timetoken }
    } catch {
      for index in accepted { requests[index].refusal = error.word }
    }
    return requests.map(\.answer)
  }

  private func publish(_ requests: [Request]) async throws(Refusal) -> [String] {
    // `engine()` would wait for the unlock, but a client needs an immediate answer.
    guard let engine = messages.runningEngine else {
      throw Refusal(word: await vault.isLocked ? "locked" : "starting")
    }
    do throws(EngineError) {
      return try await engine.publish(requests.map(message)).map(\.description)
    } catch {
      throw Refusal(word: error.code == .vaultLocked ? "locked" : error.code.description)
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

/// The reason for which requests were not stored, as one word.
struct Refusal: Error {
  let word: String
}
