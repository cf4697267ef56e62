import AccessControl
import ApplicationStore
import Foundation
import MessagingQueue
import NIOPosix
import Realtime
import Synchronization
import TestSupport
import Testing

@testable import MessagingServer

@Suite struct SubscribeTests {
  @Test func `the answer to a malformed filter names the fault and its byte`() async throws {
    try await ServerFixture.run { server in
      let answer = try await server.get(
        "/v2/subscribe/\(server.open.subscribe)/c/0?filter-expr=data.%20%3D%3D%201&tt=1")
      #expect(answer.status == 481)
      #expect(answer.text.contains("the filter expression lacks a name behind a dot, at byte 5"))
    }
  }

  @Test func `a filter that passes nothing of what is there waits for what comes`() async throws {
    try await ServerFixture.run { server in
      let (publish, subscribe) = (server.open.publish, server.open.subscribe)
      func send(_ number: Int) async throws {
        _ = try await server.get("/publish/\(publish)/\(subscribe)/0/c/0/\(number)")
      }
      let target = "/v2/subscribe/\(subscribe)/c/0"
      let start = try await server.get(target)
      let place = try #require(ServerFixture.place(in: start.text))
      try await send(1)
      async let poll = server.get("\(target)?tt=\(place)&filter-expr=data%3E5")
      try await server.waitForPolls(1)
      try await send(9)
      let answer = try await poll
      #expect(answer.text.contains("\"d\":9"))
      #expect(!answer.text.contains("\"d\":1,"))
    }
  }

  @Test func `the filter of a poll is not evaluated by the thread that takes the request`()
    async throws
  {
    try await ServerFixture.run { server in
      let gate = server.server.gate
      let home = try #require(gate.home)
      let place = home.place
      try await server.engine.publish(Message(channel: Channel("shop/c"), payload: [0x39]))
      try await eventually { home.realtime.place > place }
      let target = "/v2/subscribe/\(server.open.subscribe)/c/0?tt=\(place)&filter-expr=data%3E5"
      // The thread that takes the request, as long as it does.
      let caller = Mutex<pthread_t?>(nil)
      let answers = Mutex<[Bool]>([])
      let exchange = HTTPExchange(
        HTTPRequest(method: "GET", target: Array(target.utf8)),
        on: MultiThreadedEventLoopGroup.singleton.next()
      ) { reply in
        guard case .response(let response) = reply, response.status == 200 else { return }
        let isByCaller = caller.withLock { $0 == pthread_self() }
        answers.withLock { $0.append(isByCaller) }
      }
      try await PubNubClient.onBlockingThread {
        caller.withLock { $0 = pthread_self() }
        PubNubService(gate, home.operations).answer(exchange)
        caller.withLock { $0 = nil }
      }
      try await eventually { answers.withLock { $0 } == [false] }
    }
  }

  @Test func `a right that ends while its poll begins ends the poll`() async throws {
    try await ServerFixture.run { server in
      let running = try #require(server.server.gate.home)
      let resource = Resource(.channel(try ChannelName("c")), of: server.open.record.id)
      let reads = Mutex(0)
      let opened = Mutex<OpenHome?>(nil)
      let home = OpenHome(
        engine: running.engine, realtime: running.realtime, store: running.store,
        directory: running.directory, logins: running.logins, operations: running.operations,
        webhooks: WebhookClient(
          WebhookConfiguration(), on: MultiThreadedEventLoopGroup.singleton),
        now: {
          // The clock is read for the caller, for the decision, and then for the presence of the user.
          let isPresence = reads.withLock { count in
            count += 1
            return count == 3
          }
          if isPresence {
            Task { try await server.store.setOpen(false, of: resource.application) }
            try? eventually {
              !running.directory.decide(.anonymous, .subscribe, resource, at: Date()).isAllowed
            }
            opened.withLock { $0 }?.recheckPolls([.application(resource.application)], groups: [])
          }
          return Date()
        })
      opened.withLock { $0 = home }
      let gate = HomeGate()
      gate.open(home)
      let statuses = Mutex<[Int]>([])
      let target = "/v2/subscribe/\(server.open.subscribe)/c/0?tt=1&uuid=alice"
      let exchange = HTTPExchange(
        HTTPRequest(method: "GET", target: Array(target.utf8)),
        on: MultiThreadedEventLoopGroup.singleton.next()
      ) { reply in
        if case .response(let response) = reply { statuses.withLock { $0.append(response.status) } }
      }
      try await PubNubClient.onBlockingThread {
        PubNubService(gate, running.operations).answer(exchange)
      }
      #expect(statuses.withLock { $0 } == [403])
      // It was allowed before.
      let channel = try Channel("shop/c")
      #expect(home.presence.read { $0.occupancy(of: channel, of: "shop") } == 1)
      opened.withLock { $0 = nil }
    }
  }

  @Test func `a refresh without changes looks at no poll, and one with changes at all`()
    async throws
  {
    try await ServerFixture.run { server in
      let home = try #require(server.server.gate.home)
      try await home.refresh()
      let round = home.polls.round
      for _ in 0..<3 { try await home.refresh() }
      #expect(home.polls.round == round)
      try await server.store.setOpen(true, of: server.closed.record.id)
      try await home.refresh()
      try await eventually { home.polls.round > round }
    }
  }

  @Test func `a poll that begins while access changes at each decision is decided once more`()
    async throws
  {
    try await ServerFixture.run { server in
      let running = try #require(server.server.gate.home)
      let opened = Mutex<OpenHome?>(nil)
      let reads = Mutex((count: 0, isChanging: false))
      let other = server.closed.record.id
      let home = OpenHome(
        engine: running.engine, realtime: running.realtime, store: running.store,
        directory: running.directory, logins: running.logins, operations: running.operations,
        webhooks: WebhookClient(
          WebhookConfiguration(), on: MultiThreadedEventLoopGroup.singleton),
        now: {
          // The first 100 reads come with a change, and each decision reads the clock.
          let changes = reads.withLock { reads in
            guard !reads.isChanging, reads.count < 100 else { return false }
            reads.count += 1
            reads.isChanging = true
            return true
          }
          if changes {
            opened.withLock { $0 }?.recheckPolls([.application(other)], groups: [])
            reads.withLock { $0.isChanging = false }
          }
          return Date()
        })
      opened.withLock { $0 = home }
      let gate = HomeGate()
      gate.open(home)
      let target = "/v2/subscribe/\(server.open.subscribe)/c/0?tt=\(home.place)"
      let exchange = HTTPExchange(
        HTTPRequest(method: "GET", target: Array(target.utf8)),
        on: MultiThreadedEventLoopGroup.singleton.next()
      ) { _ in }
      PubNubService(gate, running.operations).answer(exchange)
      #expect(home.polls.count == 1)
      #expect(reads.withLock { $0.count } < 10)
      exchange.abandon()
      #expect(home.polls.count == 0)
      opened.withLock { $0 = nil }
    }
  }

  @Test func `who is present in all channels leaves out the private ones of others`() async throws {
    try await ServerFixture.run { server in
      let subscribe = server.open.subscribe
      let id = server.open.record.id
      let hash = try server.store.keys.hasher.hash(Array("key".utf8), of: id)
      let key = Grant.Key(
        .channel(try ChannelName("private-c")), of: id, holder: .authKey(hash))
      try await server.store.put([try Grant(.read, on: key, minutes: 0, start: Date())])
      _ = try await server.server.gate.home?.refresh()
      let path = "/v2/presence/sub-key/\(subscribe)"
      let joined = try await server.get(
        "\(path)/channel/c,private-c/heartbeat?uuid=alice&auth=key")
      #expect(joined.status == 200)
      let everyone = try await server.get(path).text
      #expect(everyone.contains("\"c\"") && !everyone.contains("private-c"))
      #expect(try await server.get("\(path)?auth=key").text.contains("private-c"))
    }
  }
}
