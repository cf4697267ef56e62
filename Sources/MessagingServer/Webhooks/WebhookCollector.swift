internal import AccessControl
internal import ApplicationStore
internal import NIOCore

/// Collects events of all applications until they are due, several in one body.
///
/// A departure waits for some seconds, and a return in that time cancels both. It does no I/O and has no clock.
struct WebhookCollector {
  /// How long a departure waits for a return.
  static let departureTime = Duration.seconds(3)
  /// How long the first event of a body waits for others.
  static let collectionTime = Duration.milliseconds(100)
  /// The most events of a body.
  static let bodyEventCount = 100
  /// The size from which a body takes no more events, in bytes.
  static let bodyByteCount = 256 << 10
  /// The most events and departures of an application that wait; more are dropped.
  ///
  /// A departure that a return has cancelled does not count.
  static let waitingCount = 10_000
  /// The most bytes of an application's events that wait; more are dropped.
  static let waitingByteCount = 4 << 20

  typealias Moment = ContinuousClock.Instant

  /// A channel, or a user on one.
  private struct Subject: Hashable {
    let channel: String
    var userID: String?
  }

  private struct Departure {
    let subject: Subject
    let event: WebhookEvent
    let due: Moment
  }

  private struct Waiting {
    var kinds: Set<WebhookEventKind>
    var events: [[UInt8]] = []
    var byteCount = 0
    /// When the first of the events is due.
    var due: Moment?
    /// In the order in which they are due; some were cancelled.
    var departures: CircularBuffer<Departure> = []
    /// When those that were not cancelled are due.
    var departing: [Subject: Moment] = [:]
    var droppedCount = 0

    init(_ kinds: Set<WebhookEventKind>) { self.kinds = kinds }

    private var hasRoom: Bool {
      events.count + departing.count < WebhookCollector.waitingCount
        && byteCount < WebhookCollector.waitingByteCount
    }

    mutating func append(_ event: WebhookEvent, at now: Moment) {
      guard kinds.contains(event.kind) else { return }
      guard hasRoom else { return droppedCount += 1 }
      let json = event.json
      events.append(json)
      byteCount += json.count
      due = due ?? now + WebhookCollector.collectionTime
    }

    mutating func arrive(_ subject: Subject, _ event: WebhookEvent, at now: Moment) {
      if departing.removeValue(forKey: subject) == nil { append(event, at: now) }
    }

    mutating func depart(_ subject: Subject, _ event: WebhookEvent, at now: Moment) {
      guard hasRoom else { return droppedCount += 1 }
      let due = now + WebhookCollector.departureTime
      departing[subject] = due
      departures.append(Departure(subject: subject, event: event, due: due))
      // One that comes and goes must not fill the memory with what it has cancelled.
      if departures.count > 2 * departing.count + 64 {
        departures.removeAll { departing[$0.subject] != $0.due }
      }
    }

    var nextDue: Moment? {
      switch (due, departures.first?.due) {
      case (let due?, let departure?): min(due, departure)
      case (let due, let departure): due ?? departure
      }
    }

    /// Takes what is due, divided into bodies.
    mutating func take(at now: Moment) -> [ArraySlice<[UInt8]>] {
      while let departure = departures.first, departure.due <= now {
        departures.removeFirst()
        if departing[departure.subject] == departure.due {
          departing[departure.subject] = nil
          append(departure.event, at: now)
        }
      }
      guard let due, due <= now else { return [] }
      defer {
        events = []
        byteCount = 0
        self.due = nil
      }
      var bodies: [ArraySlice<[UInt8]>] = []
      var (start, size) = (0, 0)
      for index in events.indices {
        if index - start == WebhookCollector.bodyEventCount
          || size >= WebhookCollector.bodyByteCount
        {
          bodies.append(events[start..<index])
          (start, size) = (index, 0)
        }
        size += events[index].count
      }
      bodies.append(events[start...])
      return bodies
    }
  }

  private var waiting: [ApplicationID: Waiting] = [:]

  /// What a call of ``take(at:timeInMilliseconds:)`` has of an application.
  struct Taken: Sendable {
    let application: ApplicationID
    let bodies: [[UInt8]]
    /// Events that had no room since the last call.
    let droppedCount: Int
  }

  /// Sets of what each application's webhooks are told; other events are not collected.
  mutating func setWanted(_ wanted: [ApplicationID: Set<WebhookEventKind>]) {
    waiting = wanted.reduce(into: [:]) { all, entry in
      let (application, kinds) = entry
      guard var kept = waiting[application] else { return all[application] = Waiting(kinds) }
      kept.kinds = kinds
      all[application] = kept
    }
  }

  /// Takes an event.
  mutating func note(_ event: WebhookEvent, of application: ApplicationID, at now: Moment) {
    // In its place, so that what waits is not copied.
    guard waiting[application] != nil else { return }
    switch event {
    case .channelOccupied(let channel):
      waiting[application]?.arrive(Subject(channel: channel), event, at: now)
    case .channelVacated(let channel):
      waiting[application]?.depart(Subject(channel: channel), event, at: now)
    case .memberAdded(let channel, let userID):
      waiting[application]?.arrive(Subject(channel: channel, userID: userID), event, at: now)
    case .memberRemoved(let channel, let userID):
      waiting[application]?.depart(Subject(channel: channel, userID: userID), event, at: now)
    case .client: waiting[application]?.append(event, at: now)
    }
  }

  /// When the next event or departure is due; nil if none waits.
  var nextDue: Moment? { waiting.values.compactMap(\.nextDue).min() }

  /// Takes what is due.
  ///
  /// - Parameter timeInMilliseconds: what the bodies say when they were made, since 1970.
  mutating func take(at now: Moment, timeInMilliseconds: Int64) -> [Taken] {
    waiting.keys.sorted().compactMap { application in
      let events = waiting[application]?.take(at: now) ?? []
      let droppedCount = waiting[application]?.droppedCount ?? 0
      waiting[application]?.droppedCount = 0
      if events.isEmpty, droppedCount == 0 { return nil }
      return Taken(
        application: application,
        bodies: events.map {
          WebhookBody.bytes($0, timeInMilliseconds: timeInMilliseconds)
        }, droppedCount: droppedCount)
    }
  }
}
