internal import Foundation
public import MessageCipher
internal import StrictJSON

/// What a subscription gives.
public enum PubNubEvent: Sendable {
  case message(PubNubMessage)
  /// An event that the server does not store.
  case signal(PubNubMessage)
  case presence(PubNubPresence)
  case status(PubNubStatus)
}

/// A state of a subscription, as an application can show it: PubNub's status categories.
public enum PubNubStatus: Sendable, Hashable {
  /// The subscription has begun: PubNub's `PNConnectedCategory`.
  case connected
  /// The connection is back, at the place where it was lost: `PNReconnectedCategory`.
  case reconnected
  /// The connection is lost, and the client tries again: `PNUnexpectedDisconnectCategory`.
  case disconnected
  /// The client waits for a server that is locked or has too much to do.
  case waiting
}

/// A message that came.
public struct PubNubMessage: Sendable {
  /// Where it was published.
  public let channel: String
  /// The pattern or the group through which it came; nil for the channel itself.
  public let subscription: String?
  /// The place of the message.
  public let timetoken: Timetoken
  /// The user id that the publisher gave; nil if it gave none.
  public let publisher: String?
  /// The JSON text of the object that the publisher gave beside the message.
  public let meta: String?
  /// The kind of message that the publisher named.
  public let customType: String?
  /// The JSON text of the message; decrypted if the client has a cipher.
  ///
  /// The error of the cipher if it was not: the message is forged, damaged, or not for this key.
  public let content: Result<[UInt8], MessageCipherError>

  /// Reads the message as a value.
  ///
  /// - Throws: the cipher's error, or the error of `JSONDecoder`.
  public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
    try JSONDecoder().decode(type, from: Data(content.get()))
  }
}

/// A change of who is present on a channel.
public struct PubNubPresence: Sendable, Hashable {
  /// A kind of change; later versions can add kinds.
  public struct Action: Sendable, Hashable, CustomStringConvertible {
    /// PubNub's name of the change.
    public let description: String

    /// A user has come.
    public static let join = Action(description: "join")
    /// A user has left.
    public static let leave = Action(description: "leave")
    /// A user gave no sign of life.
    public static let timeout = Action(description: "timeout")
    /// A user has another state.
    public static let stateChange = Action(description: "state-change")
    /// Several changes since the last event: ``PubNubPresence/joined``, ``PubNubPresence/left``.
    public static let interval = Action(description: "interval")
  }

  /// The channel on which users are present.
  public let channel: String
  /// What changed.
  public let action: Action
  /// Nil for an interval.
  public let userID: String?
  /// How many users are present then.
  public let occupancy: Int
  /// The place of the event.
  public let timetoken: Timetoken
  /// Who has come, in an interval.
  public let joined: [String]
  /// Who has left or timed out.
  public let left: [String]
  /// The JSON text of the user's state.
  public let state: String?
}

extension PubNubEvent {
  /// Reads an event of an answer; nil for a kind that this client does not know.
  init?(_ value: JSONValue, _ cipher: MessageCipher?) {
    guard let channel = value.member("c")?.string, let content = value.member("d"),
      let timetoken = Timetoken(value.member("p")?.member("t")?.string)
    else { return nil }
    if channel.utf8.suffix(7).elementsEqual("-pnpres".utf8) {
      guard let presence = PubNubPresence(content, String(channel.dropLast(7)), timetoken) else {
        return nil
      }
      self = .presence(presence)
      return
    }
    let subscription = value.member("b")?.string.flatMap { $0 == channel ? nil : $0 }
    let message = PubNubMessage(
      channel: channel, subscription: subscription, timetoken: timetoken,
      publisher: value.member("i")?.string, meta: value.member("u")?.text,
      customType: value.member("cmt")?.string,
      content: PubNubMessage.decrypt(content, channel, cipher))
    switch value.member("e")?.integer ?? 0 {
    case 0: self = .message(message)
    case 1: self = .signal(message)
    default: return nil
    }
  }
}

extension PubNubMessage {
  static func decrypt(
    _ content: JSONValue, _ channel: String, _ cipher: MessageCipher?
  ) -> Result<[UInt8], MessageCipherError> {
    let json = Array(content.text.utf8)
    guard let cipher else { return .success(json) }
    do throws(MessageCipherError) {
      // An object is encrypted in a part, as PubNub's push messages are.
      if case .object = content {
        return .success(try cipher.decrypt(member: "pn_other", of: json, channel: channel).bytes)
      }
      return .success(try cipher.decrypt(json, channel: channel).bytes)
    } catch {
      return .failure(error)
    }
  }
}

extension PubNubPresence {
  fileprivate init?(_ value: JSONValue, _ channel: String, _ timetoken: Timetoken) {
    guard let action = value.member("action")?.string,
      let occupancy = value.member("occupancy")?.integer
    else {
      return nil
    }
    func names(_ name: String) -> [String] {
      value.member(name)?.elements?.compactMap(\.string) ?? []
    }
    self.init(
      channel: channel, action: Action(description: action), userID: value.member("uuid")?.string,
      occupancy: Int(clamping: occupancy), timetoken: timetoken, joined: names("join"),
      left: names("leave") + names("timeout"), state: value.member("data")?.text)
  }
}
