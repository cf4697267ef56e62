import MessagingQueue
import TestSupport
import Testing

@testable import Realtime

@Suite struct PresenceTests {
  // MARK: Joins, leaves, timeouts

  @Test func `a join tells who, where, how many, when and with which state`() throws {
    var run = PresenceRun()
    _ = run.pass(7)
    let events = try run.presence.join(
      UserID("ana"), of: "shop", on: [PresenceRun.channel("shop/a")],
      state: [PresenceRun.channel("shop/a"): Array("{}".utf8)], arrival: 1, at: run.time)
    #expect(
      events == [
        PresenceEvent(
          channel: PresenceRun.channel("shop/a"),
          content: .change(.join, UserID("ana"), state: Array("{}".utf8)), occupancy: 1,
          unixSeconds: PresenceRun.unixSeconds + 7)
      ])
  }

  @Test func `a join of a user who is present is no event`() throws {
    var run = PresenceRun()
    #expect(try run.join("ana", "a", "b") == ["join ana shop/a 1", "join ana shop/b 1"])
    #expect(try run.join("ana", "a", "b").isEmpty)
    #expect(try run.join("bob", "b", "c") == ["join bob shop/b 2", "join bob shop/c 1"])
    #expect(run.users("b") == ["ana", "bob"])
    #expect(run.whereNow("bob") == ["shop/b", "shop/c"])
    #expect(run.presence.channels(of: "shop").count == 3)
  }

  @Test func `a leave ends the presence on its channels only`() throws {
    var run = PresenceRun()
    _ = try run.join("ana", "a", "b", state: ["a": "1"])
    #expect(run.leave("ana", "a", "c") == ["leave ana shop/a 0 1"])
    #expect(run.leave("bob", "b").isEmpty)
    #expect(run.whereNow("ana") == ["shop/b"])
    #expect(run.occupancy("a") == 0)
  }

  @Test func `a user without a sign of life times out at its deadline`() throws {
    var run = PresenceRun()
    _ = try run.join("ana", "a", timeout: 20)
    #expect(run.pass(19).isEmpty)
    #expect(run.pass(1) == ["timeout ana shop/a 0"])
    #expect(run.presence.nextDeadline == nil)
  }

  @Test func `a sign of life extends the presence on its channels only`() throws {
    var run = PresenceRun()
    _ = try run.join("ana", "a", "b", timeout: 20)
    _ = run.pass(15)
    _ = try run.join("ana", "b", timeout: 20)
    #expect(run.pass(5) == ["timeout ana shop/a 0"])
    #expect(run.pass(14).isEmpty)
    #expect(run.pass(1) == ["timeout ana shop/b 0"])
  }

  @Test func `a call without a timeout keeps the user's own, and 300 seconds without one`() throws {
    var run = PresenceRun()
    _ = try run.join("ana", "a", timeout: 60)
    _ = try run.join("bob", "a")
    _ = run.pass(10)
    _ = try run.join("ana", "a")
    #expect(run.pass(60) == ["timeout ana shop/a 1"])
    #expect(run.pass(229).isEmpty)
    #expect(run.pass(1) == ["timeout bob shop/a 0"])
  }

  @Test func `a shorter timeout counts from the call that gives it`() throws {
    var run = PresenceRun()
    _ = try run.join("ana", "a", timeout: 300)
    _ = try run.join("ana", "a", timeout: 20)
    #expect(run.pass(20) == ["timeout ana shop/a 0"])
    _ = try run.join("bob", "a", timeout: 0)
    _ = try run.join("eve", "a", timeout: 1_000_000)
    #expect(run.pass(1) == ["timeout bob shop/a 1"])
    #expect(run.pass(3_599) == ["timeout eve shop/a 0"])
  }

  @Test func `timeouts come in the order of their deadlines, however late they are noticed`() throws
  {
    var run = PresenceRun()
    _ = try run.join("ana", "b", "a", timeout: 30)
    _ = try run.join("bob", "a", timeout: 20)
    #expect(
      run.pass(100) == ["timeout bob shop/a 1", "timeout ana shop/a 0", "timeout ana shop/b 0"])
  }

  @Test func `a call ends no more than asked for, and the next one ends the rest`() throws {
    var run = PresenceRun()
    for user in 0..<10 { _ = try run.join("u\(user)", "a", timeout: 20) }
    run.now += .seconds(20)
    #expect(run.presence.expire(at: run.time, maximumCount: 4).count == 4)
    #expect(run.presence.nextDeadline == run.now)
    #expect(run.presence.expire(at: run.time).count == 6)
    #expect(run.presence.nextDeadline == nil)
  }

  @Test func `listening to presence makes no user present, and a pattern is a channel`() throws {
    var run = PresenceRun()
    #expect(try run.join("ana", "a-pnpres", "w.*-pnpres").isEmpty)
    #expect(try run.join("ana", "w.*", "w.*-pnpres") == ["join ana shop/w.* 1"])
    #expect(run.occupancy("w.x") == 0)
    #expect(run.leave("ana", "w.*", "w.*-pnpres") == ["leave ana shop/w.* 0"])
  }

  @Test func `users are told apart byte by byte, and by application`() throws {
    var run = PresenceRun()
    _ = try run.join("\u{E9}", "a")
    #expect(try run.join("e\u{301}", "a") == ["join e\u{301} shop/a 2"])
    run.application = "bank"
    #expect(try run.join("\u{E9}", "a") == ["join \u{E9} bank/a 1"])
    #expect(run.whereNow("\u{E9}") == ["bank/a"])
  }

  @Test func `a page of users continues the page before it, whichever users have left`() throws {
    var run = PresenceRun()
    for user in 0..<200 { _ = try run.join("u\(user)", "a") }
    for user in 0..<200 where user % 4 != 0 { _ = run.leave("u\(user)", "a") }
    let left = stride(from: 0, to: 200, by: 4).map { "u\($0)" }
    #expect(run.users("a") == left)
    let page = run.presence.users(
      of: PresenceRun.channel("shop/a"), of: "shop", offset: 10, maximumCount: 5)
    #expect(page.map(\.user.text) == Array(left[10..<15]))
  }

  // MARK: Calls out of order

  @Test func `a leave has no effect on a join that arrived later`() throws {
    var run = PresenceRun()
    _ = try run.join("ana", "a", arrival: 7)
    #expect(run.leave("ana", "a", arrival: 6).isEmpty)
    #expect(run.leave("ana", "a", arrival: 8) == ["leave ana shop/a 0"])
  }

  @Test func `a join has no effect after a leave that arrived later`() throws {
    var run = PresenceRun()
    _ = run.leave("ana", "a", arrival: 6)
    #expect(try run.join("ana", "a", "b", arrival: 5) == ["join ana shop/b 1"])
    #expect(try run.join("ana", "a", arrival: 7) == ["join ana shop/a 1"])
    _ = run.pass(300)
    #expect(run.presence.nextDeadline == nil)
  }

  @Test func `a leave is remembered for 10 seconds, and no more leaves than the limit`() throws {
    var run = PresenceRun { $0.maximumDepartureCount = 2 }
    for (index, channel) in ["a", "b", "c"].enumerated() {
      _ = run.leave("ana", channel, arrival: 11 + UInt64(index))
    }
    #expect(try run.join("ana", "a", "b", "c", arrival: 10) == ["join ana shop/a 1"])
    _ = run.pass(10)
    #expect(try run.join("ana", "b", "c", arrival: 9).count == 2)
  }

  @Test func `an earlier call neither shortens the presence nor resets the state`() throws {
    var run = PresenceRun()
    _ = try run.join("ana", "a", state: ["a": "1"], timeout: 100, arrival: 4)
    #expect(try run.join("ana", "a", state: ["a": "0"], timeout: 20, arrival: 3).isEmpty)
    #expect(try run.setState("0", "ana", "a", arrival: 2).isEmpty)
    #expect(try run.setState("2", "ana", "a", arrival: 5) == ["stateChange ana shop/a 1 2"])
    #expect(run.pass(99).isEmpty)
    #expect(run.pass(1) == ["timeout ana shop/a 0 2"])
  }

  // MARK: State

  @Test func `a state changes where the user is present, and only if it is another`() throws {
    var run = PresenceRun()
    _ = try run.join("ana", "a", "b", state: ["a": "1", "c": "9"])
    #expect(
      try run.setState("2", "ana", "a", "b", "c")
        == ["stateChange ana shop/a 1 2", "stateChange ana shop/b 1 2"])
    #expect(try run.setState("2", "ana", "a").isEmpty)
    #expect(try run.join("ana", "a", state: ["a": "3"]) == ["stateChange ana shop/a 1 3"])
    #expect(run.users("a") == ["ana 3"])
    let channels = ["shop/a", "shop/b", "shop/c"].map(PresenceRun.channel)
    let states = run.presence.states(of: UserID("ana"), of: "shop", on: channels)
    #expect(states == [channels[0]: Array("3".utf8), channels[1]: Array("2".utf8)])
  }

  @Test func `a state ends with the presence`() throws {
    var run = PresenceRun()
    _ = try run.join("ana", "a", state: ["a": "1"])
    _ = run.leave("ana", "a")
    #expect(try run.join("ana", "a") == ["join ana shop/a 1"])
    #expect(try run.setState("1", "eve", "a").isEmpty)
  }

  // MARK: Bounds

  @Test func `each bound refuses a call, which then changes nothing`() throws {
    var run = PresenceRun {
      $0.maximumUserCount = 2
      $0.maximumChannelCount = 3
      $0.maximumPresenceCount = 4
      $0.maximumStateByteCount = 4
      $0.maximumTotalStateByteCount = 6
    }
    _ = try run.join("ana", "a", "b", state: ["a": "1234"])
    #expect(throws: PresenceRefusal.tooManyChannels) { try run.join("ana", "c", "d") }
    #expect(throws: PresenceRefusal.stateTooLarge) {
      try run.join("bob", "a", state: ["a": "12345"])
    }
    #expect(throws: PresenceRefusal.tooMuchState) {
      try run.join("bob", "a", state: ["a": "123"])
    }
    #expect(throws: PresenceRefusal.stateTooLarge) { try run.setState("12345", "ana", "b") }
    #expect(throws: PresenceRefusal.tooMuchState) { try run.setState("123", "ana", "b") }
    #expect(run.users("a") == ["ana 1234"] && run.whereNow("bob").isEmpty)
    _ = try run.join("bob", "a", "b")
    #expect(throws: PresenceRefusal.tooManyPresences) { try run.join("bob", "c") }
    #expect(throws: PresenceRefusal.tooManyUsers) { try run.join("eve", "c") }
    // Room again: the state of ana on `a`, and her two channels.
    _ = run.leave("ana", "a", "b")
    #expect(try run.join("eve", "c", state: ["c": "1234"]) == ["join eve shop/c 1 1234"])
    // Other applications have bounds of their own.
    run.application = "bank"
    #expect(try run.join("eve", "c") == ["join eve bank/c 1"])
  }

  @Test func `joins and leaves without end keep a bounded number of deadlines and places`() throws {
    var presence = ApplicationPresence(PresenceLimits())
    let channel = PresenceRun.channel("shop/a")
    _ = try presence.join(
      UserID("ana"), on: [channel], state: [:], timeout: .seconds(300), arrival: 0,
      at: PresenceTime(PresenceRun.start, unixSeconds: 0))
    for step in 0..<20_000 {
      let time = PresenceTime(PresenceRun.start + .milliseconds(step), unixSeconds: 0)
      let number = UInt64(2 * step)
      let user = UserID("u\(step % 10)")
      _ = try presence.join(
        user, on: [channel], state: [:], timeout: .seconds(300), arrival: number + 1, at: time)
      _ = presence.leave(user, on: [channel], arrival: number + 2, at: time)
    }
    #expect(presence.deadlineCount <= 1_005)
    #expect(presence.channels[channel].map { $0.placeCount <= 40 && $0.occupancy == 1 } == true)
  }

  // MARK: Intervals

  @Test func `a crowded channel announces who came and went after 10 seconds`() throws {
    var run = PresenceRun {
      $0.announceMaximum = 2
      $0.announcesUsers = true
    }
    _ = try run.join("ana", "a", timeout: 15)
    _ = try run.join("bob", "a")
    #expect(try run.join("cid", "a").isEmpty)
    #expect(try run.join("dan", "a").isEmpty)
    #expect(try run.setState("1", "cid", "a") == ["stateChange cid shop/a 4 1"])
    #expect(run.leave("bob", "a").isEmpty)
    #expect(run.pass(9).isEmpty)
    #expect(run.pass(1) == ["interval shop/a 3 +[cid, dan] -[bob]"])
    // Nothing has changed since.
    #expect(run.pass(4).isEmpty)
    _ = try run.join("eve", "a")
    #expect(run.pass(1).isEmpty)
    #expect(run.pass(9) == ["interval shop/a 3 +[eve] ![ana]"])
  }

  @Test func `an interval event lists no user unless asked to`() throws {
    var run = PresenceRun { $0.announceMaximum = 0 }
    _ = try run.join("ana", "a")
    #expect(run.presence.nextDeadline == run.now + .seconds(10))
    #expect(run.pass(10) == ["interval shop/a 1"])
  }

  @Test func `a user who comes and goes within an interval is in no list`() throws {
    var run = PresenceRun {
      $0.announceMaximum = 1
      $0.announcesUsers = true
    }
    _ = try run.join("ana", "a")
    _ = try run.join("bob", "a")
    _ = try run.join("cid", "a")
    _ = run.leave("cid", "a")
    _ = run.leave("bob", "a", arrival: 1)
    #expect(run.pass(10) == ["interval shop/a 2 +[bob]"])
  }

  @Test func `a channel that is no longer crowded first announces what it has held back`() throws {
    var run = PresenceRun {
      $0.announceMaximum = 1
      $0.announcesUsers = true
    }
    _ = try run.join("ana", "a")
    _ = try run.join("bob", "a")
    #expect(run.leave("ana", "a") == ["interval shop/a 1 +[bob]", "leave ana shop/a 1"])
    #expect(run.pass(10).isEmpty)
  }

  @Test func `too many changes for a list tell the client to ask`() throws {
    var run = PresenceRun {
      $0.announceMaximum = 0
      $0.announcesUsers = true
      $0.maximumAnnouncedCount = 2
    }
    for user in ["ana", "bob"] { _ = try run.join(user, "a", "b") }
    _ = try run.join("cid", "a")
    #expect(run.pass(10) == ["interval shop/a 3 ask", "interval shop/b 2 +[ana, bob]"])
  }
}
