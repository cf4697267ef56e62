internal import Foundation

/// An attempt at a message that did not end in its acknowledgement.
public struct DeliveryFailure: Sendable, Hashable, Codable {
  /// The reason of a lease that ended without an answer.
  static let leaseEnded = "its lease ended"
  /// The reason of a release that gave none.
  static let released = "released"
  /// The last ones are kept.
  static let keptCount = 16

  /// Which attempt it was: 1 is the first.
  public let attempt: Int
  /// When it was known to have failed, by the wall clock, in units of 100 ns since 1970.
  public let time: Int64
  /// What the receiver said, or what happened.
  public let reason: String

  init(attempt: Int, time: Int64, reason: String) {
    self.attempt = attempt
    self.time = time
    self.reason = reason
  }

  /// The text of a list of failures with this one as its last.
  func appended(to list: String?) -> String? {
    Self.text(of: (Self.list(list) + [self]).suffix(Self.keptCount)) ?? list
  }

  /// The text of a list; nil for none.
  static func text(of failures: [DeliveryFailure]) -> String? {
    if failures.isEmpty { return nil }
    let encoder = JSONEncoder()
    // Equal histories are equal bytes.
    encoder.outputFormatting = .sortedKeys
    return (try? encoder.encode(failures)).map { String(decoding: $0, as: UTF8.self) }
  }

  /// What a text of ``appended(to:)`` says; nothing, if it is none.
  static func list(_ text: String?) -> [DeliveryFailure] {
    guard let text else { return [] }
    return (try? JSONDecoder().decode([DeliveryFailure].self, from: Data(text.utf8))) ?? []
  }
}
