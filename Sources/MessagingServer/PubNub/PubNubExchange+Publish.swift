internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import Realtime
internal import StrictJSON

extension PubNubExchange {
  /// Publishes a message, or sends a signal.
  ///
  /// A message is on the disk when the answer is sent. A signal is neither stored nor acknowledged by anyone.
  func publish(_ call: PublishCall) throws(PubNubRefusal) {
    guard call.publishKey == caller.application.application.publishKey else {
      throw PubNubRefusal(.publish, 400, "Invalid Key")
    }
    let operation: AccessOperation =
      switch call.kind {
      case .message: .publish
      case .signal: .signal
      case .fire: .fire
      }
    guard isAllowed(operation, channels: [call.channel]) else { return }
    try check(call)
    let message = Message(
      channel: try channel(call.channel), payload: call.payload, headers: notes(call).headers,
      deduplicationID: try deduplicationID())
    switch call.kind {
    case .message:
      let application = caller.application
      run(on: EventLoopExecutor(exchange.eventLoop)) { [home] in
        .sent(try await home.publish([message], of: application)[0])
      }
    case .signal:
      run { [home] in .sent(try await home.realtime.send([message])[0]) }
    case .fire:
      // Server functions, which this server does not have, are its only readers.
      answer(.sent(home.place))
    }
  }

  private func deduplicationID() throws(PubNubRefusal) -> String? {
    do throws(DeduplicationHeader.Fault) {
      return try exchange.request.deduplicationID()
    } catch {
      throw PubNubRefusal(.publish, 400, error.message)
    }
  }

  private func check(_ call: PublishCall) throws(PubNubRefusal) {
    if call.kind == .signal, call.payload.count > PubNubService.maximumSignalByteCount {
      throw PubNubRefusal(.publish, 400, "Signal size too large")
    }
    let byteCount = call.payload.count + (call.meta?.count ?? 0)
    guard byteCount <= PubNubService.maximumPayloadByteCount else {
      throw PubNubRefusal(.publish, 413, "Message Too Large")
    }
    guard JSONText.isValid(call.payload) else {
      throw PubNubRefusal(.publish, 400, "Invalid JSON")
    }
  }

  private func notes(_ call: PublishCall) -> MessageNotes {
    var notes = MessageNotes()
    notes.kind = call.kind == .signal ? .signal : .message
    notes.publisher = request.userID
    notes.meta = call.meta.map { String(decoding: $0, as: UTF8.self) }
    notes.customType = call.customType
    notes.isHidden = call.isStored == false
    if let hours = call.hours, hours > 0, !notes.isHidden {
      notes.expiration = Timetoken(home.now().addingTimeInterval(hours * 3600))
    }
    return notes
  }
}
