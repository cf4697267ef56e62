import GRDB
import Foundation
import MessagingQueue

/// An engine on a plain file in a folder of its own; further engines on the same file act as other
/// processes.
final class LoggedEngine: Sendable {
  let plain: PlainEngine
  let engine: MessagingEngine

  init() async throws {
    plain = try PlainEngine()
    engine = try plain.engine()
  }

  var notificationPath: String { plain.pool.path + "-notify" }
}

extension MessagingEngine {
  /// Publishes texts in one commit.
  @discardableResult
  func publish(_ texts: [String], to channel: Channel) async throws -> [Timetoken] {
    try await publish(texts.map { Message(channel: channel, payload: Array($0.utf8)) })
  }
}

extension LogMessage {
  var text: String { String(decoding: payload, as: UTF8.self) }
}
