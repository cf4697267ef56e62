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
}
