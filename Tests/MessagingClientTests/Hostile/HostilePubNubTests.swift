import Synchronization
import TestSupport
import Testing

@testable import MessagingClient

extension HostileTests {
  /// Answers of a hostile server to calls of PubNub's protocol.
  @Suite struct PubNubTests {
    private static func client(_ url: String) throws -> PubNubClient {
      var configuration = PubNubConfiguration(
        server: url, subscribeKey: "sub", publishKey: "pub", userID: "u")
      configuration.answerTime = .seconds(2)
      configuration.pollTime = .seconds(2)
      configuration.backoff = Backoff(first: .milliseconds(20), maximum: .milliseconds(40))
      return try PubNubClient(configuration)
    }

    /// What the shortest waits allow, and three attempts without one.
    private static func mostAttempts(since start: ContinuousClock.Instant) -> Int {
      Int((ContinuousClock.now - start) / .milliseconds(10)) + 3
    }

    /// Answers each request with the same body.
    private static func run(
      _ body: String, _ test: (PubNubClient, HostileServer) async throws -> Void
    )
      async throws
    {
      try await HostileServer.run { peer in
        while peer.head() != nil { peer.send(answer("200 OK", [], body)) }
      } _: { server in
        try await test(try client(server.url), server)
      }
    }

    static let bodies = [
      "", "x", "{", "null", "[]", "{}", "[[]]", "[1]", "[\"a\"]", "[-1]", "[1.5]", "[1e999]",
      "[99999999999999999999999]", "[\"17\",1]", "[1,\"Sent\"]", "[1,\"Sent\",17]",
      "[1,\"Sent\",\"-1\"]",
      "[1,\"Sent\",\"99999999999999999999\"]", "{\"t\":null}", "{\"t\":{\"t\":1,\"r\":1}}",
      "{\"t\":{\"t\":\"1\"}}", "{\"t\":{\"t\":\"1\",\"r\":\"1\"}}", "{\"t\":{\"t\":\"\",\"r\":1}}",
      "{\"t\":{\"t\":\"1\",\"t\":\"2\",\"r\":1},\"m\":[]}", "{\"channels\":[]}",
      "{\"channels\":{\"a\":\"b\"}}",
      "{\"channels\":{\"a\":[null,1,{}]}}", "{\"payload\":1}", "\u{FEFF}[17]",
      String(repeating: "[", count: 100_000), String(repeating: "{\"a\":", count: 100_000),
      String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000),
      "\"\\uD800\"", "[" + String(repeating: "9", count: 100_000) + "]",
    ]

    @Test(arguments: bodies.indices)
    func `an answer that is not in the protocol ends each call in an error or a value`(
      index: Int
    ) async throws {
      let start = try #require(Timetoken(rawValue: 1))
      try await Self.run(Self.bodies[index]) { client, _ in
        let calls: [() async throws -> Void] = [
          { _ = try await client.time() }, { try await client.publish(json: [0x31], to: "a") },
          { try await client.signal(json: [0x31], to: "a") },
          { _ = try await client.history(of: ["a"]) }, { _ = try await client.hereNow(on: ["a"]) },
          {
            _ = try await client.messageCount(of: "a", after: start)
          },
          { _ = try await client.whereNow() }, { _ = try await client.state(on: "a") },
          { _ = try await client.channels(ofGroup: "a") },
        ]
        for call in calls {
          let error = await failure { try await call() }
          #expect(error == nil || error?.code == .invalidAnswer)
        }
      }
    }

    @Test(arguments: bodies.indices)
    func `a poll with an answer that is none is tried again, with waits between`(index: Int)
      async throws
    {
      try await Self.run(Self.bodies[index]) { client, server in
        let subscription = try client.subscribe(to: ["a"])
        let start = ContinuousClock.now
        let task = Task {
          var events = subscription.makeAsyncIterator()
          var statuses: [PubNubStatus] = []
          while let event = try await events.next() {
            if case .status(let status) = event { statuses.append(status) }
          }
          return statuses
        }
        try await eventually { server.polls >= 2 }
        task.cancel()
        #expect(try await task.value == [.disconnected])
        #expect(server.polls <= Self.mostAttempts(since: start))
      }
    }

    @Test(arguments: ["5", "9", "12"])
    func `a server that answers polls immediately with nothing gets no storm of polls`(
      timetoken: String
    ) async throws {
      let first = Mutex(true)
      try await HostileServer.run { peer in
        while peer.head() != nil {
          let isFirst = first.withLock { first in
            defer { first = false }
            return first
          }
          let place = isFirst ? "10" : timetoken
          peer.send(answer("200 OK", [], "{\"t\":{\"t\":\"\(place)\",\"r\":1},\"m\":[]}"))
        }
      } _: { server in
        let subscription = try Self.client(server.url).subscribe(to: ["a"])
        try await Self.expectWaits(between: { server.polls }, of: subscription)
        // It never goes back.
        #expect(subscription.place?.rawValue == max(10, Int64(timetoken) ?? 0))
      }
    }

    @Test func `a server whose timetoken goes back is not asked for what was delivered`()
      async throws
    {
      let request = Mutex(0)
      try await HostileServer.run { peer in
        while let head = peer.head() {
          let number = request.withLock { number in
            defer { number += 1 }
            return number
          }
          // A server that was restored: it gives what is behind the place that it is asked for.
          let place = head.firstMatch(of: /[?&]tt=(\d+)/).flatMap { Int($0.1) } ?? 0
          let stored = number == 0 ? [] : number < 3 ? [11, 12] : [11, 12, 13]
          let messages = stored.filter { $0 > place }
            .map { "{\"c\":\"a\",\"d\":\($0),\"p\":{\"t\":\"\($0)\"}}" }.joined(separator: ",")
          let next = [10, 12, 10, 13][min(number, 3)]
          peer.send(
            answer("200 OK", [], "{\"t\":{\"t\":\"\(next)\",\"r\":1},\"m\":[\(messages)]}"))
        }
      } _: { server in
        let subscription = try Self.client(server.url).subscribe(to: ["a"])
        let task = Task {
          var events = subscription.makeAsyncIterator()
          var places: [Int64] = []
          while let event = try await events.next() {
            if case .message(let message) = event { places.append(message.timetoken.rawValue) }
          }
          return places
        }
        try await eventually { server.polls >= 5 }
        task.cancel()
        #expect(try await task.value == [11, 12, 13])
      }
    }

    private static func messages(_ subscription: PubNubSubscription, _ count: Int) async throws
      -> [String]
    {
      var texts: [String] = []
      for try await event in subscription {
        guard case .message(let message) = event else { continue }
        texts.append(String(decoding: try message.content.get(), as: UTF8.self))
        if texts.count == count { break }
      }
      return texts
    }

    @Test func `events that an iteration has not taken are the next one's`() async throws {
      let events = (1...3).map { "{\"c\":\"a\",\"d\":\($0),\"p\":{\"t\":\"1\($0)\"}}" }
      try await Self.run(
        "{\"t\":{\"t\":\"20\",\"r\":1},\"m\":[\(events.joined(separator: ","))]}"
      ) { client, _ in
        let subscription = try client.subscribe(to: ["a"], after: Timetoken(rawValue: 5))
        #expect(try await Self.messages(subscription, 1) == ["1"])
        #expect(subscription.place?.rawValue == 5)
        #expect(try await Self.messages(subscription, 2) == ["2", "3"])
        #expect(subscription.place?.rawValue == 20)
      }
    }

    @Test func `an iteration ends when its subscription does, also in the middle of a poll`()
      async throws
    {
      try await HostileServer.run { peer in
        guard peer.head()?.contains("/v2/subscribe/") == true else {
          peer.send(answer("200 OK", [], "{}"))
          return
        }
        peer.wait()
      } _: { server in
        let client = try Self.client(server.url)
        let subscription = try client.subscribe(to: ["a"])
        let next = Task {
          var events = subscription.makeAsyncIterator()
          return try await events.next() == nil
        }
        try await eventually { server.text.contains("/v2/subscribe/") }
        try await subscription.unsubscribe()
        #expect(try await next.value)
      }
    }

    @Test func `unsubscribing from all ends all, also if the server is not told`() async throws {
      try await HostileServer.run { peer in
        // What the server is told of the end is lost.
        _ = peer.head()
      } _: { server in
        let client = try Self.client(server.url)
        let all = try ["a", "b"].map { try client.subscribe(to: [$0]) }
        let error = await failure { try await client.unsubscribeAll() }
        #expect(error != nil)
        for subscription in all {
          var events = subscription.makeAsyncIterator()
          #expect(try await events.next() == nil)
        }
        // A request that asks for nothing new can be sent again.
        for channel in ["a", "b"] { #expect(server.text.contains("/channel/\(channel)/leave")) }
      }
    }

    @Test(arguments: [0, 59, -60])
    func `a grant of less than a minute is not one for ever`(seconds: Int) async throws {
      try await Self.run("{}") { client, server in
        var configuration = client.configuration
        configuration.secretKey = SharedSecret(secret("key"))
        let granting = try PubNubClient(configuration)
        let error = await failure {
          try await granting.grant([.read], channels: ["a"], lifetime: .seconds(seconds))
        }
        #expect(error?.code == .invalidArgument && server.connectionCount == 0)
      }
    }

    @Test func `a timetoken that is huge is taken, and one beyond it is no answer`() async throws {
      for (text, place) in [("9223372036854775807", Int64.max), ("9223372036854775808", nil)] {
        try await Self.run("{\"t\":{\"t\":\"\(text)\",\"r\":-9223372036854775808},\"m\":[]}") {
          client, _ in
          let subscription = try client.subscribe(to: ["a"])
          var events = subscription.makeAsyncIterator()
          _ = try await events.next()
          #expect(subscription.place?.rawValue == place)
        }
      }
    }

    @Test func `what a server says of a refusal is one line in an error`() async throws {
      try await HostileServer.run { peer in
        while peer.head() != nil {
          peer.send(answer("403 Forbidden", [], "{\"message\":\"a\\r\\n\\u001b[2J\\u202eb\"}"))
        }
      } _: { server in
        let error = await failure {
          try await Self.client(server.url).publish(json: [0x31], to: "a")
        }
        #expect(error?.code == .forbidden)
        #expect(
          error?.description.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value < 0x7F }
            == true
        )
      }
    }

    /// Iterates for four attempts.
    private static func expectWaits(
      between attempts: @Sendable () -> Int, of subscription: PubNubSubscription
    ) async throws {
      let start = ContinuousClock.now
      let task = Task {
        var events = subscription.makeAsyncIterator()
        while try await events.next() != nil {}
      }
      try await eventually { attempts() >= 4 }
      task.cancel()
      _ = await task.result
      #expect(attempts() <= mostAttempts(since: start))
    }

    @Test func `a server that ends each poll is asked with waits between`() async throws {
      try await HostileServer.run { peer in
        _ = peer.head()
        peer.reset()
      } _: { server in
        let subscription = try Self.client(server.url).subscribe(to: ["a"])
        try await Self.expectWaits(between: { server.connectionCount }, of: subscription)
      }
    }
  }
}

extension HostileServer {
  fileprivate var polls: Int { text.components("/v2/subscribe") }
}
