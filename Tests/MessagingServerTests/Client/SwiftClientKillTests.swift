import Foundation
import MessagingClient
import Synchronization
import TestSupport
import Testing

/// `MessagingClient` beside a built `datavaultd` that is killed again and again.
@Suite(.timeLimit(.minutes(10))) struct SwiftClientKillTests {
  private static let killCount = 5

  /// Counts acknowledged messages.
  private final class Count: Sendable {
    let value = Atomic(0)

    func waitForMore() async throws {
      let before = value.load(ordering: .relaxed)
      try await eventually { value.load(ordering: .relaxed) > before + 10 }
    }
  }

  @Test func `kill -9 of the server loses and repeats nothing of the Swift client`() async throws {
    let server = try ServerProgram(in: ScratchFolder())
    var configuration = PubNubConfiguration(
      server: server.url, subscribeKey: server.keys.subscribeKey,
      publishKey: server.keys.publishKey, userID: "anna")
    configuration.backoff = Backoff(first: .milliseconds(50), maximum: .seconds(1))
    let client = try MessagingClient.PubNubClient(configuration)
    let subscription = try client.subscribe(to: ["c"], after: Timetoken(rawValue: 1))

    let isOver = Atomic(false)
    let count = Count()
    async let published = {
      var (acknowledged, number) = ([Int](), 0)
      while !isOver.load(ordering: .relaxed) {
        do throws(MessagingClientError) {
          try await client.publish(json: Array("\(number)".utf8), to: "c")
          acknowledged.append(number)
          count.value.add(1, ordering: .relaxed)
          number += 1
        } catch {
          // Nothing was sent, or it is not known: then the number is used up.
          if error.code == .outcomeUnknown { number += 1 }
        }
      }
      try await client.publish(json: Array("-1".utf8), to: "c")
      return acknowledged
    }()
    async let received = {
      var numbers: [Int] = []
      for try await case .message(let message) in subscription {
        let number = try message.decode(Int.self)
        if number < 0 { break }
        numbers.append(number)
      }
      return numbers
    }()
    for _ in 0..<Self.killCount {
      try await count.waitForMore()
      server.kill()
      try server.restart()
    }
    try await count.waitForMore()
    isOver.store(true, ordering: .relaxed)

    let (acknowledged, numbers) = (try await published, try await received)
    #expect(acknowledged.count > Self.killCount)
    #expect(Set(acknowledged).subtracting(numbers) == [])
    // In their order, each once.
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
  }
}
