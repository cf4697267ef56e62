import MessagingQueue
import TestSupport

@testable import Realtime

/// The log of a database as commits leave it, with the engine's rules for timetokens.
struct ModelLog {
  static let start = Timetoken(rawValue: 17_000_000_000_000_000)!

  private(set) var messages: [LogMessage] = []
  private(set) var highWater = start.rawValue
  /// The wall clock.
  var now = start.rawValue

  /// Commits a message to each channel, in one transaction.
  mutating func commit(_ names: [String]) throws {
    for name in names {
      let channel = try Channel(name)
      let step = channel.timetokenStep
      highWater = (max(now, highWater + 1) + step - 1) / step * step
      messages.append(
        LogMessage(timetoken: Timetoken(unchecked: highWater), channel: channel, payload: []))
    }
  }

  mutating func reserve(_ count: Int64) -> ClosedRange<Int64> {
    let first = (max(now, highWater + 1) + 99) / 100 * 100
    highWater = first + count - 1
    return first...highWater
  }

  /// What a read of the log finds now.
  ///
  /// - Parameter subscription: nil for all channels.
  func tail(
    after place: Timetoken, of subscription: Subscription? = nil, maximumCount: Int = .max
  ) -> LogTail {
    let first = messages.lastIndex { $0.timetoken <= place }.map { $0 + 1 } ?? 0
    let found = messages[first...].filter { message in
      subscription.map { $0.source(of: message.channel.topics) != nil } ?? true
    }
    let isAtEnd = found.count <= maximumCount
    let page = Array(found.prefix(maximumCount))
    let end = Timetoken(unchecked: max(highWater, place.rawValue))
    return LogTail(
      messages: page, end: isAtEnd ? end : page.last?.timetoken ?? place, isAtEnd: isAtEnd)
  }
}

/// The run that reads the log and reserves places, one step at a time, so that anything can happen between two.
struct ModelRun {
  enum Step {
    case idle
    case reserving
    case reserved(ClosedRange<Int64>)
    case reading(LogTail)
  }

  var step = Step.idle

  /// Takes the next step.
  ///
  /// - Returns: what it does to the distributor or the places.
  mutating func next(
    _ log: inout ModelLog, needsReservation: Bool, readPlace: Timetoken, pageCount: Int,
    _ random: inout SeededRandom
  ) -> Effect {
    switch step {
    case .idle where needsReservation && random.oneIn(10): return .fail
    case .idle where needsReservation: step = .reserving
    case .reserving: step = .reserved(log.reserve(1000))
    case .reserved(let range):
      step = .reading(log.tail(after: readPlace, maximumCount: pageCount))
      return .reserve(range)
    case .idle: step = .reading(log.tail(after: readPlace, maximumCount: pageCount))
    case .reading(let tail):
      step = .idle
      return .take(tail)
    }
    return .none
  }

  enum Effect {
    case none
    case fail
    case reserve(ClosedRange<Int64>)
    case take(LogTail)
  }
}

extension Message {
  /// An event with a number by which a test knows it.
  init(event number: Int, to name: String) throws {
    self.init(channel: try Channel(name), payload: Array("\(number)".utf8))
  }
}
