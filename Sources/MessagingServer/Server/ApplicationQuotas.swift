internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import Synchronization

/// Keeps each application within the age, the bytes and the channels that it can store.
///
/// Messages that are too old are removed. Above the bytes, publishing is refused until some are. Above the channels,
/// publishing to another one is refused until one is empty and removed.
final class ApplicationQuotas: Sendable {
  /// What a message takes on the disk beside its payload and its headers: its row and its entries in indexes.
  static let messageByteCount = 640
  /// The most channels of an application.
  static let channelCount = 100_000

  private struct Stored {
    var byteCount = 0
    var channelCount = 0
    /// The hashes of channels that were there when something was published to them, since the last sweep.
    var channels: Set<Int> = []
  }

  private let maximumChannelCount: Int
  private let applications = Mutex<[String: Stored]>([:])

  init(maximumChannelCount: Int = ApplicationQuotas.channelCount) {
    self.maximumChannelCount = maximumChannelCount
  }

  /// Counts messages that are about to be published; false if the application has no room for them.
  func take(_ messages: [Message], of entry: DirectoryEntry) -> Bool {
    // What only settles leases is done at any size.
    if messages.isEmpty { return true }
    let byteCount = messages.reduce(0) { sum, message in
      sum + message.byteCount + (message.deduplicationID?.utf8.count ?? 0) + Self.messageByteCount
    }
    return applications.withLock { applications in
      let sum = applications[entry.record.name, default: Stored()].byteCount + byteCount
      guard sum <= entry.record.retention.byteCount else { return false }
      applications[entry.record.name, default: Stored()].byteCount = sum
      return true
    }
  }

  /// Counts a channel that is about to be published to, if the log does not have it; false if there are too many.
  func take(
    _ channel: Channel, of entry: DirectoryEntry, in engine: MessagingEngine
  ) async throws(EngineError) -> Bool {
    let (name, hash) = (entry.record.name, channel.name.hashValue)
    let isThere = applications.withLock {
      $0[name, default: Stored()].channels.contains(hash)
    }
    if isThere { return true }
    let isNew = try await !engine.hasChannel(channel)
    return applications.withLock { applications in
      var stored = applications.removeValue(forKey: name) ?? Stored()
      defer { applications[name] = stored }
      if isNew {
        guard stored.channelCount < maximumChannelCount else { return false }
        stored.channelCount += 1
      }
      if stored.channels.count < maximumChannelCount { stored.channels.insert(hash) }
      return true
    }
  }

  /// Removes what is too old, and counts what is stored.
  func sweep(
    _ entries: [DirectoryEntry], in engine: MessagingEngine, at now: Date
  ) async throws(EngineError) {
    for entry in entries {
      let age = Double(entry.record.retention.minutes) * 60
      _ = try await engine.sweepApplication(
        named: entry.record.name, before: Timetoken(now.addingTimeInterval(-age)))
    }
    let sizes = try await engine.applicationSizes()
    applications.withLock {
      $0 = sizes.mapValues {
        Stored(
          byteCount: $0.byteCount + $0.messageCount * Self.messageByteCount,
          channelCount: $0.channelCount)
      }
    }
  }
}
