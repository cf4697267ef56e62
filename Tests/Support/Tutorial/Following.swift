// Sources/Shop/Following.swift
import MessagingQueue

extension Shop {
  /// Prints the messages in the log, and then each new one, from any process.
  func follow() async throws {
    let engine = try await open()
    for try await message in try await engine.messages(of: orders, after: .beginning) {
      print("\(message.timetoken): \(String(decoding: message.payload, as: UTF8.self))")
    }
  }
}
