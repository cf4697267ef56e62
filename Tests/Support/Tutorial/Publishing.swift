// Sources/Shop/Publishing.swift
import MessagingQueue

extension Shop {
  func publish(_ texts: [String]) async throws {
    let engine = try await open()
    try await engine.publish(
      texts.map { Message(channel: orders, payload: Array($0.utf8)) })
    print("on the disk: \(texts.count)")
    try await engine.stop()
  }
}
