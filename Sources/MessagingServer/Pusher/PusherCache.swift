internal import Foundation
internal import MessagingQueue

/// The newest message of a cache channel, from the log.
enum PusherCache {
  /// How old it is at most.
  static let maximumAge = Duration.seconds(30 * 60)
  /// How many messages are looked at for one that history shows.
  static let lookCount = 100

  /// What a cache has of the newest messages of a channel; nil if there is none.
  static func message(in page: [LogMessage], at now: Date) -> LogMessage? {
    guard let message = page.first(where: { MessageNotes($0.headers).isInHistory(at: now) }),
      now < end(of: message.timetoken)
    else { return nil }
    return message
  }

  /// When a message is too old.
  static func end(of timetoken: Timetoken) -> Date {
    timetoken.date.addingTimeInterval(Double(maximumAge.components.seconds))
  }
}

extension OpenHome {
  /// The newest message of a channel that a cache has; nil if there is none.
  func newestMessage(of channel: Channel) async throws(EngineError) -> PusherMessage? {
    let page = try await engine.history(
      of: channel, in: .newestFirst, maximumCount: PusherCache.lookCount)
    return PusherCache.message(in: page, at: now()).flatMap { PusherMessage($0) }
  }
}
