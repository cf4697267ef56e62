internal import Foundation

/// What a subscription to a channel of Pusher's protocol gives.
public enum PusherEvent: Sendable {
  case message(PusherMessage)
  case memberAdded(PusherMember)
  case memberRemoved(userID: String)
  /// A cache channel has no message.
  case cacheMiss
  case status(Status)

  /// A state of a subscription, as an application can show it.
  public enum Status: Sendable, Hashable {
    /// Events come: for the first time, or again after a lost connection.
    ///
    /// Pusher's protocol has no history: what was published in between is lost, except the newest message of a cache
    /// channel.
    case subscribed
    /// The connection is lost, and the client tries again.
    case disconnected
  }
}

/// An event of a channel.
public struct PusherMessage: Sendable {
  /// Where it was published.
  public let channel: String
  /// The name of the event.
  public let name: String
  /// Who sent it, on presence channels: the server vouches for it.
  public let userID: String?
  /// The data of the event: a text, usually JSON.
  ///
  /// It is decrypted on encrypted channels, and if the client has a cipher.
  ///
  /// The error if it was not: the event is forged, damaged, or not for this key.
  public let content: Result<[UInt8], any Error>

  /// Reads the data as a value.
  ///
  /// - Throws: why it was not decrypted, or the error of `JSONDecoder`.
  public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    try JSONDecoder().decode(type, from: Data(content.get()))
  }
}

/// A user who is present on a channel.
public struct PusherMember: Sendable, Hashable {
  /// Names the user.
  public let userID: String
  /// The JSON text that the application's server gave for the user.
  public let info: String?
}

/// What the beginning of a channel's name says.
enum PusherChannelKind {
  case `public`
  case `private`
  case presence
  case encrypted

  init(_ name: String) {
    let bytes = name.utf8
    self =
      if bytes.starts(with: "private-encrypted-".utf8) {
        .encrypted
      } else if bytes.starts(with: "private-".utf8) {
        .private
      } else if bytes.starts(with: "presence-".utf8) {
        .presence
      } else {
        .public
      }
  }
}

/// The form of what a signature covers, as Pusher's server libraries check it: neither has a colon or a line break.
enum PusherName {
  private static let maximumByteCount = 164

  /// Whether a text is two numbers with a point.
  static func isSocketID(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return text.utf8.count <= 64 && parts.count == 2
      && parts.allSatisfy { part in
        !part.isEmpty && part.allSatisfy { (0x30...0x39).contains($0) }
      }
  }

  /// Whether a text is 1 to 164 of `A-Z`, `a-z`, `0-9` and `_-=@,.;`.
  static func isChannel(_ text: String) -> Bool {
    (1...maximumByteCount).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "_-=@,.;".utf8.contains(byte)
        }
      }
  }
}
