internal import ApplicationStore
internal import MessagingQueue

/// Why a publication is refused before it reaches the log.
enum PublishingRefusal: Error, Sendable, Equatable {
  /// Too much waits for its commit.
  case busy
  /// The application stores too much.
  case quota

  /// For people.
  var message: String {
    switch self {
    case .busy: "Too many messages wait for the disk"
    case .quota: "Storage quota exceeded"
    }
  }
}

extension OpenHome {
  /// Publishes messages of an application, all or none, for every protocol: they are on the disk when it returns.
  ///
  /// - Returns: their places in the log.
  /// - Throws: ``PublishingRefusal`` if too much waits for its commit or the application stores too much; the errors of
  ///   the engine.
  func publish(
    _ messages: [Message], of application: DirectoryEntry
  ) async throws -> [Timetoken] {
    let byteCount = messages.reduce(0) { $0 + $1.payload.count }
    guard operations.admission.take(byteCount, of: application.id) else {
      operations.metrics?.count(.admission)
      throw PublishingRefusal.busy
    }
    defer { operations.admission.release(byteCount, of: application.id) }
    guard quotas.take(byteCount, of: application) else {
      operations.metrics?.count(.quota)
      throw PublishingRefusal.quota
    }
    let places = try await engine.publish(messages)
    for message in messages { operations.metrics?.countPublished(byteCount: message.payload.count) }
    return places
  }
}
