internal import Foundation
internal import MessagingQueue
internal import Realtime
internal import StrictJSON
internal import Synchronization

/// A message of any protocol as Pusher's clients get it.
struct PusherMessage: Sendable, Equatable {
  let timetoken: Timetoken
  let channel: String
  let data: [UInt8]
  /// The connection that does not get it.
  let excludedSocketID: String?
  /// The JSON of the event.
  let bytes: [UInt8]

  /// Nil for an event of presence, which no client of Pusher gets.
  init?(_ message: LogMessage) {
    let notes = MessageNotes(message.headers)
    guard notes.kind != .presence else { return nil }
    timetoken = message.timetoken
    channel = message.channel.nameInApplication
    data =
      String(validating: message.payload, as: UTF8.self) == nil
      ? Array(Data(message.payload).base64EncodedString().utf8) : message.payload
    excludedSocketID = notes.excludedSocketID
    bytes = PusherEvent.json(
      notes.eventName ?? MessageNotes.standardEventName, channel: channel, userID: notes.userID,
      data: data)
  }
}

/// The newest event as Pusher's clients get it: made once, however many subscribers its channel has.
final class PusherBroadcast: Sendable {
  private let newest = Mutex<(event: LiveEvent, message: PusherMessage?)?>(nil)

  /// Nil for an event that no client of Pusher gets.
  func message(of event: LiveEvent) -> PusherMessage? {
    newest.withLock { newest in
      if let newest, newest.event === event { return newest.message }
      let message = PusherMessage(event.message)
      newest = (event, message)
      return message
    }
  }
}
