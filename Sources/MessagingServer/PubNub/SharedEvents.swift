internal import MessagingQueue
internal import Realtime
internal import StrictJSON
internal import Synchronization

/// What subscribers need of the newest events, made once for all of them.
final class SharedEvents: Sendable {
  /// The most bytes of payloads and headers of a generation; values that are parsed have some 20 times as much.
  static let maximumByteCount = 1 << 20
  /// The most events of a generation.
  static let maximumCount = 500

  private struct State {
    var newest: [ObjectIdentifier: SharedEvent] = [:]
    var byteCount = 0
    /// The generation before the newest.
    var earlier: [ObjectIdentifier: SharedEvent] = [:]
  }

  private let state = Mutex(State())

  /// What is shared of an event; it is made again for one that two generations of others have followed.
  func shared(_ event: LiveEvent) -> SharedEvent {
    state.withLock { state in
      let id = ObjectIdentifier(event)
      if let known = state.newest[id] ?? state.earlier[id] { return known }
      if state.newest.count >= Self.maximumCount
        || state.byteCount + event.byteCount > Self.maximumByteCount
      {
        (state.newest, state.earlier, state.byteCount) = ([:], state.newest, 0)
      }
      let added = SharedEvent(event)
      state.newest[id] = added
      state.byteCount += event.byteCount
      return added
    }
  }
}

/// An event as subscribers get it, and as filters read it.
final class SharedEvent: Sendable {
  let event: LiveEvent
  private let notes: MessageNotes
  private let json = Mutex<EventJSON?>(nil)
  /// Null where there is no JSON.
  private let payload = Mutex<JSONValue?>(nil)
  private let meta = Mutex<JSONValue?>(nil)

  init(_ event: LiveEvent) {
    self.event = event
    notes = MessageNotes(event.message.headers)
  }

  /// - Parameter subscribeKey: of the application.
  func json(subscribeKey: String) -> EventJSON {
    json.withLock { json in
      let made = json ?? EventJSON(event.message, subscribeKey: subscribeKey)
      json = made
      return made
    }
  }

  /// Whether a filter lets the event through; presence passes each.
  ///
  /// - Parameter stepCount: reduced by the steps of the evaluation, and by the bytes of the event.
  func passes(_ filter: FilterExpression, _ stepCount: inout Int) -> Bool {
    if notes.kind == .presence { return true }
    stepCount -= event.byteCount
    let payload =
      filter.readsPayload
      ? Self.value(payload) { PayloadJSON(event.message.payload).bytes } : .null
    let meta = Self.value(meta) { Array((notes.meta ?? "null").utf8) }
    return filter.matches(payload: payload, meta: meta, &stepCount)
  }

  private static func value(
    _ value: borrowing Mutex<JSONValue?>, _ text: () -> [UInt8]
  ) -> JSONValue {
    value.withLock { value in
      let parsed = value ?? (try? JSONReader.value(text())) ?? .null
      value = parsed
      return parsed
    }
  }
}
