/// What has been published since the last notification.
public struct ChangeNotification: Sendable, Hashable {
  /// The channels that have new messages, each with the newest of them.
  ///
  /// A message that was removed from the log before the notification is not counted.
  public let newest: [Channel: Timetoken]

  /// Everything up to here has been told; the next notification tells what is beyond.
  public let through: Timetoken

  /// The channels that have new messages.
  public var channels: Set<Channel> { Set(newest.keys) }
}
