/// Frames at the end of a write-ahead log that a recovery did not use.
///
/// A torn tail after a power cut looks the same as damage in the middle of the log: SQLite opens
/// without them in both cases. Whoever counts commits can tell.
public struct DiscardedLogTail: Sendable, Equatable, Codable {
  /// The first frame that was not used; frames count from 1.
  public let firstFrame: Int

  /// How many frames of the same generation of the log lie there, the first included; what lies more
  /// than 65,536 frames (257 MiB) after the first is not looked at.
  public let frameCount: Int

  static let furthestFrame = 65_536

  /// Describes a tail.
  public init(firstFrame: Int, frameCount: Int) {
    self.firstFrame = firstFrame
    self.frameCount = frameCount
  }
}
