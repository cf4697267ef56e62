/// What is handed to ``MessagingEngine/publish(_:)-(Message)``: bytes for a channel.
public struct Message: Sendable, Hashable {
  /// Where it goes.
  public var channel: Channel

  /// What it carries: any bytes, none included, returned exactly as they were given.
  public var payload: [UInt8]

  /// Makes a message.
  public init(channel: Channel, payload: [UInt8]) {
    self.channel = channel
    self.payload = payload
  }
}
