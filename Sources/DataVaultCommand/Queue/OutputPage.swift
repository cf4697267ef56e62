internal import MessagingQueue

/// The lines of one batch, to be written at once, with the place where each message ends.
struct OutputPage {
  private(set) var bytes: [UInt8] = []
  private var ends: [Int] = []

  /// Lays out deliveries up to the first that the format cannot carry.
  init(_ deliveries: [Delivery], format: MessageFormat, withTokens: Bool) {
    for delivery in deliveries {
      guard let line = format.line(for: delivery, withToken: withTokens) else { return }
      bytes += line
      ends.append(bytes.count)
    }
  }

  /// How many messages lie wholly within the first bytes.
  func messageCount(within byteCount: Int) -> Int {
    ends.prefix { $0 <= byteCount }.count
  }
}
