import MessagingQueue
import TestSupport
import Testing

@testable import Realtime

@Suite struct EphemeralPlacesTests {
  private var log = ModelLog()
  private var places = EphemeralPlaces(at: ModelLog.start)

  /// The last digits of places, from ``ModelLog/start`` on.
  private func offsets(_ batch: EphemeralPlaces.Batch) -> [Int64] {
    batch.events.map { $0.place.rawValue - ModelLog.start.rawValue }
  }

  private func tail(_ log: ModelLog) -> LogTail { log.tail(after: ModelLog.start) }

  private mutating func send(_ count: Int, as id: UInt64 = 1) throws -> [Int64]? {
    let messages = try (0..<count).map { try Message(event: $0, to: "s/a") }
    switch places.send(messages, as: id, now: log.now) {
    case .sent(let batch): return offsets(batch)
    case .wait: return nil
    case .full:
      Issue.record("too many events wait")
      return nil
    }
  }

  @Test mutating func `events come after the last message, up to the next multiple of 100`()
    throws
  {
    try log.commit(["s/a"])
    _ = places.take(tail(log))
    #expect(try send(2) == [101, 102])
    #expect(try send(97) == Array(103...199))
    #expect(try send(1) == nil)
    try log.commit(["s/a"])
    let batch = places.take(tail(log))
    #expect(offsets(batch) == [200, 201])
    #expect(batch.events.map(\.isStored) == [true, false])
    #expect(batch.sent.map(\.timetokens.count) == [1])
  }

  @Test mutating func `the first event after a start has a reserved place`() throws {
    // Another channel's message does not make the numbers free that an earlier run can have given out.
    try log.commit(["plain"])
    _ = places.take(tail(log))
    #expect(try send(1) == nil)
    #expect(places.needsReservation)
    let range = log.reserve(1000)
    #expect(range.lowerBound == ModelLog.start.rawValue + 100)
    places.reserve(range)
    #expect(!places.needsReservation)
    #expect(offsets(places.take(tail(log))) == [100])
    #expect(try send(2) == [101, 102])
  }

  @Test mutating func `the end stays at the last place that was given out while places are left`()
    throws
  {
    _ = try send(1)
    let range = log.reserve(1000)
    places.reserve(range)
    _ = places.take(tail(log))
    try log.commit(["plain", "plain"])
    _ = places.take(tail(log))
    #expect(places.end == range.lowerBound)
    #expect(places.read == log.highWater)
    #expect(try send(998)?.count == 998)
    #expect(try send(1)?.count == 1)
    #expect(places.end == range.upperBound)
    _ = places.take(tail(log))
    #expect(places.end == log.highWater)
  }

  @Test
  mutating func
    `waiting events come after the messages before their reservation, and before later ones`()
    throws
  {
    _ = try send(3, as: 7)
    try log.commit(["s/a"])
    let range = log.reserve(1000)
    try log.commit(["s/a"])
    places.reserve(range)
    let first = places.take(log.tail(after: ModelLog.start, maximumCount: 1))
    #expect(offsets(first) == [100] && first.sent.isEmpty)
    let second = places.take(log.tail(after: Timetoken(unchecked: places.read)))
    #expect(second.events.map(\.isStored) == [false, false, false, true])
    #expect(offsets(second) == [200, 201, 202, 1200])
    #expect(second.sent.map(\.id) == [7])
    // The message behind the reservation has ended it.
    #expect(places.end == log.messages[1].timetoken.rawValue)
    #expect(try send(99)?.count == 99)
    #expect(try send(1) == nil)
  }

  @Test mutating func `an event does not get a place far behind the clock`() throws {
    try log.commit(["s/a"])
    _ = places.take(tail(log))
    log.now += 10_000_000
    #expect(try send(1) == [101])
    log.now += 3_000_000_000
    #expect(try send(1) == nil)
    places.reserve(log.reserve(1000))
    // Behind the next one too, however long the commit took.
    log.now += 3_000_000_000
    #expect(offsets(places.take(tail(log))).last == 3_010_000_000)
  }

  @Test mutating func `too many waiting events are refused, and those that wait are not lost`()
    throws
  {
    var limits = EphemeralPlaces.Limits()
    limits.count = 10
    limits.byteCount = 100
    places = EphemeralPlaces(at: ModelLog.start, limits)
    #expect(try send(9) == nil)
    for messages in [
      [try Message(event: 1, to: "s/a"), try Message(event: 2, to: "s/a")],
      [Message(channel: try Channel("s/a"), payload: Array(repeating: 0, count: 92))],
    ] {
      guard case .full = places.send(messages, as: 2, now: log.now) else {
        Issue.record("the events are not refused")
        return
      }
    }
    #expect(try send(1, as: 3) == nil)
    #expect(places.failWaiting() == [1, 3])
    #expect(try send(10) == nil)
    places.reserve(log.reserve(1000))
    #expect(places.take(tail(log)).events.count == 10)
  }

  @Test(arguments: 1...40)
  func `every event gets a place of its own, after all that were given out`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var log = ModelLog()
    var run = ModelRun()
    var places = EphemeralPlaces(at: ModelLog.start)
    var runStart = ModelLog.start
    var greatestEnd = places.end
    var stored: [LogMessage] = []
    var (sentOrder, given) = ([Int](), [Int]())
    var ephemeralPlaces: Set<Int64> = []
    var senders: [UInt64: Int] = [:]
    var number = 0

    func take(_ batch: EphemeralPlaces.Batch) {
      for event in batch.events {
        #expect(event.place.rawValue > greatestEnd)
        greatestEnd = event.place.rawValue
        if event.isStored {
          stored.append(event.message)
        } else {
          given.append(Int(String(decoding: event.message.payload, as: UTF8.self))!)
          ephemeralPlaces.insert(event.place.rawValue)
        }
      }
      if let last = batch.events.last { #expect(places.end >= last.place.rawValue) }
      greatestEnd = max(greatestEnd, places.end)
      for (id, timetokens) in batch.sent {
        #expect(senders.removeValue(forKey: id) == timetokens.count)
      }
    }
    /// One run's messages are all of the log from its start on.
    func checkStored() {
      let wanted = log.messages.filter {
        $0.channel.isOfApplication && $0.timetoken > runStart
          && $0.timetoken.rawValue <= places.read
      }
      #expect(stored == wanted)
    }

    for _ in 0..<600 {
      switch random.next(12) {
      case 0, 1:
        let names = (0..<1 + random.next(3)).map { _ in ["s/a", "s/b", "plain"][random.next(3)] }
        try log.commit(names)
      case 2, 3, 4:
        let count = random.oneIn(8) ? 120 : 1 + random.next(4)
        let messages = try (0..<count).map { _ in
          number += 1
          return try Message(event: number, to: "s/a")
        }
        let id = UInt64(number)
        switch places.send(messages, as: id, now: log.now) {
        case .sent(let batch):
          #expect(log.now - batch.events[0].place.rawValue <= 10_000_000)
          sentOrder += number - count + 1...number
          take(batch)
        case .wait:
          sentOrder += number - count + 1...number
          senders[id] = count
        case .full: break
        }
      case 5: log.now += Int64([1, 99, 10_000, 20_000_000, -50_000][random.next(5)])
      case 6 where random.oneIn(6):
        // Killed, and started again: what waits is lost.
        checkStored()
        stored = []
        sentOrder = given
        senders = [:]
        run = ModelRun()
        runStart = Timetoken(unchecked: log.highWater)
        places = EphemeralPlaces(at: runStart)
        greatestEnd = max(greatestEnd, places.end)
      default:
        let effect = run.next(
          &log, needsReservation: places.needsReservation,
          readPlace: Timetoken(unchecked: places.read), pageCount: 1 + random.next(4), &random)
        switch effect {
        case .none: break
        case .fail:
          let failed = places.failWaiting()
          let count = failed.reduce(0) { $0 + (senders.removeValue(forKey: $1) ?? 0) }
          sentOrder.removeLast(count)
        case .reserve(let range): places.reserve(range)
        case .take(let tail): take(places.take(tail))
        }
      }
    }
    checkStored()
    #expect(given == Array(sentOrder.prefix(given.count)))
    #expect(sentOrder.count - given.count == senders.values.reduce(0, +))
    #expect(ephemeralPlaces.count == given.count)
    #expect(
      ephemeralPlaces.isDisjoint(
        with: log.messages.filter { $0.channel.isOfApplication }.map(\.timetoken.rawValue)))
  }
}
