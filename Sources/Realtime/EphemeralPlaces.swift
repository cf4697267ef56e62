internal import DequeModule
internal import MessagingQueue

/// Decides the places of all events: those of the log have theirs, and events that are not stored get places between.
///
/// The places rise, so that a subscriber continues from ``end`` without a loss or a repetition. After a place of the
/// log, the numbers up to the next multiple of 100 are free: no message of an application gets one. When they are used
/// up, or lie far behind the clock, the caller reserves more in the database. Events wait for that, and for the
/// messages that were committed before it.
///
/// It does no I/O and has no clock.
struct EphemeralPlaces {
  struct Limits {
    /// The most events that wait for places.
    var count = 10_000
    /// The most bytes of their payloads and headers.
    var byteCount = 16 << 20
    /// How far a place can be behind the clock, in units of 100 ns.
    var lag: Int64 = 10_000_000
  }

  /// How many places a reservation asks for: 10 ms.
  static let reservedCount: Int64 = 100_000

  /// Events in their order.
  struct Batch {
    var events: [LiveEvent] = []
    /// The waiting senders whose events are among them.
    var sent: [(id: UInt64, timetokens: [Timetoken])] = []
  }

  /// What happens with the events of a sender.
  enum Answer {
    /// They have their places.
    case sent(Batch)
    /// They wait: ``take(_:)`` or ``failWaiting()`` names the sender.
    case wait
    /// Too many wait.
    case full
  }

  private struct Group {
    let id: UInt64
    let messages: [Message]
    let byteCount: Int
  }

  private let limits: Limits
  /// All events up to this place have been given out; those that follow come after it.
  private(set) var end: Int64
  /// How far the log has been read, which is ahead of ``end`` while reserved places are left.
  private(set) var read: Int64
  /// The numbers after ``end`` that are free, up to this one.
  private var lastFree: Int64
  /// Numbers from here on have not been given out before a restart.
  private let firstUnused: Int64
  /// The newest reservation, until it is used up or a message behind it has come.
  private var reservation: ClosedRange<Int64>?
  private var waiting: Deque<Group> = []
  private var waitingCount = 0
  private var waitingByteCount = 0

  /// Begins at the end of the log.
  init(at place: Timetoken, _ limits: Limits = Limits()) {
    self.limits = limits
    end = place.rawValue
    read = end
    lastFree = end
    firstUnused = Self.lastOfHundred(end) + 1
  }

  private static func lastOfHundred(_ number: Int64) -> Int64 { number / 100 * 100 + 99 }

  /// Whether events wait for places that must be reserved: call ``reserve(_:)`` or ``failWaiting()``.
  var needsReservation: Bool {
    guard let reservation else { return !waiting.isEmpty }
    let isUnused = end < reservation.lowerBound - 1
    return !waiting.isEmpty && !isUnused
  }

  /// Takes the events of a sender, all or none.
  ///
  /// - Parameters:
  ///   - id: names the sender if it has to wait.
  ///   - now: the wall clock's time in units of 100 ns.
  mutating func send(_ messages: [Message], as id: UInt64, now: Int64) -> Answer {
    var batch = Batch()
    if waiting.isEmpty, Int64(messages.count) <= lastFree - end, now - end <= limits.lag {
      _ = place(messages, &batch)
      return .sent(batch)
    }
    let byteCount = messages.reduce(0) { $0 + $1.payload.count + $1.headers.byteCount }
    guard waitingCount + messages.count <= limits.count,
      waitingByteCount + byteCount <= limits.byteCount
    else { return .full }
    waiting.append(Group(id: id, messages: messages, byteCount: byteCount))
    waitingCount += messages.count
    waitingByteCount += byteCount
    return .wait
  }

  /// Takes places that no message will get; they are used after the next read of the log.
  ///
  /// - Parameter places: after everything that was given out; the log was read before they were reserved.
  mutating func reserve(_ places: ClosedRange<Int64>) { reservation = places }

  /// Forgets the waiting events, as no places could be reserved.
  ///
  /// - Returns: their senders.
  mutating func failWaiting() -> [UInt64] {
    defer {
      waiting = []
      (waitingCount, waitingByteCount) = (0, 0)
    }
    return waiting.map(\.id)
  }

  /// Takes the part of the log after ``read``.
  mutating func take(_ tail: LogTail) -> Batch {
    var batch = Batch()
    for message in tail.messages where message.channel.isOfApplication {
      let place = message.timetoken.rawValue
      if let reservation, place > reservation.upperBound {
        use(reservation, &batch)
        self.reservation = nil
      }
      // Only an import of messages with the timetokens of an older version brings one into a hundred that has begun.
      guard place > end else { continue }
      batch.events.append(LiveEvent(message, isStored: true))
      advance(to: place)
    }
    read = max(read, tail.end.rawValue)
    if let reservation, end < reservation.upperBound {
      // All messages before it have come.
      if read >= reservation.lowerBound { use(reservation, &batch) }
    } else {
      reservation = nil
      advance(to: read)
      if !batch.events.isEmpty { placeWaiting(&batch) }
    }
    return batch
  }

  private mutating func advance(to place: Int64) {
    guard place > end else { return }
    end = place
    lastFree = place < firstUnused ? place : Self.lastOfHundred(place)
  }

  private mutating func use(_ reservation: ClosedRange<Int64>, _ batch: inout Batch) {
    advance(to: reservation.lowerBound - 1)
    lastFree = reservation.upperBound
    placeWaiting(&batch)
  }

  private mutating func placeWaiting(_ batch: inout Batch) {
    while let group = waiting.first, Int64(group.messages.count) <= lastFree - end {
      batch.sent.append((group.id, place(group.messages, &batch)))
      waiting.removeFirst()
      waitingCount -= group.messages.count
      waitingByteCount -= group.byteCount
    }
  }

  private mutating func place(_ messages: [Message], _ batch: inout Batch) -> [Timetoken] {
    messages.map { message in
      end += 1
      let timetoken = Timetoken(unchecked: end)
      batch.events.append(
        LiveEvent(
          LogMessage(
            timetoken: timetoken, channel: message.channel, payload: message.payload,
            headers: message.headers), isStored: false))
      return timetoken
    }
  }
}
