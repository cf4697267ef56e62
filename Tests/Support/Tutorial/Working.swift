// Sources/Shop/Working.swift
import MessagingQueue

extension Shop {
  /// Works until no order has come for three seconds.
  func work() async throws {
    let engine = try await open()
    while let delivery = try await engine.receive(
      from: orders, lease: .seconds(30), waitingUpTo: .seconds(3)
    ).first {
      print("attempt \(delivery.attempt): \(String(decoding: delivery.payload, as: UTF8.self))")
      try await engine.acknowledge([delivery.token])
    }
    try await engine.stop()
  }

  /// Takes an order and never settles it.
  func hold() async throws {
    let engine = try await open()
    let deliveries = try await engine.receive(from: orders, lease: .seconds(2))
    print("holding \(deliveries.count)")
    // You kill the worker here.
    try await Task.sleep(for: .seconds(3600))
  }
}
