internal import MessageCipher
internal import NIOHTTP1
internal import StrictJSON

extension PubNubClient {
  /// A part of the history of channels.
  public struct History: Sendable {
    /// The messages of each channel, the oldest first; channels without messages are left out.
    public let messages: [String: [PubNubMessage]]

    /// The place before which the next older part of a channel ends; nil if it had no message here.
    public func next(of channel: String) -> Timetoken? { messages[channel]?.first?.timetoken }
  }

  /// Reads stored messages, decrypted if the client has a cipher.
  ///
  /// - Parameters:
  ///   - before: only messages that are older; nil for the newest ones.
  ///   - through: only messages from here on.
  ///   - maximumCount: for each channel; at most 100 for one channel, and 25 for several.
  public func history(
    of channels: [String], before: Timetoken? = nil, through: Timetoken? = nil,
    maximumCount: Int = 25
  ) async throws(MessagingClientError) -> History {
    var target = RequestTarget(
      path: "/v3/history/sub-key/\(encodedKey)/channel/\(Self.list(channels))")
    target.add("max", "\(maximumCount)")
    target.add("start", before?.description)
    target.add("end", through?.description)
    for name in ["include_meta", "include_uuid", "include_custom_message_type"] {
      target.add(name, "true")
    }
    let value = try object(try await call(target), "the history was not read")
    guard let members = value.member("channels")?.members else {
      throw MessagingClientError(.invalidAnswer, "the answer to a history call has no channels")
    }
    var messages: [String: [PubNubMessage]] = [:]
    for member in members {
      messages[member.name] = (member.value.elements ?? [])
        .compactMap { PubNubMessage(stored: $0, on: member.name, configuration.cipher) }
    }
    return History(messages: messages)
  }

  /// How many messages a channel has after a place.
  public func messageCount(
    of channel: String, after timetoken: Timetoken
  ) async throws(MessagingClientError) -> Int {
    var target = RequestTarget(
      path: "/v3/history/sub-key/\(encodedKey)/message-counts/\(Self.list([channel]))")
    target.add("timetoken", timetoken.description)
    let value = try object(try await call(target), "the messages were not counted")
    guard let count = value.member("channels")?.member(channel)?.integer else {
      throw MessagingClientError(.invalidAnswer, "the answer to a count has no number")
    }
    return Int(clamping: count)
  }

  /// Deletes messages of a channel, which needs the right to delete.
  ///
  /// - Parameters:
  ///   - after: only messages that are newer; nil for all.
  ///   - through: this message and older ones; nil for all.
  public func deleteMessages(
    of channel: String, after: Timetoken? = nil, through: Timetoken? = nil
  ) async throws(MessagingClientError) {
    var target = RequestTarget(
      path: "/v3/history/sub-key/\(encodedKey)/channel/\(Self.list([channel]))")
    target.add("start", after?.description)
    target.add("end", through?.description)
    _ = try object(try await call(target, method: .DELETE), "no message was deleted")
  }

  var encodedKey: String { RequestTarget.encode(configuration.subscribeKey) }
}

extension PubNubMessage {
  fileprivate init?(stored value: JSONValue, on channel: String, _ cipher: MessageCipher?) {
    guard let content = value.member("message"),
      let timetoken = Timetoken(value.member("timetoken")?.string)
    else {
      return nil
    }
    var meta = value.member("meta")
    // A message without one has an empty text, or null.
    if meta == .string("") || meta == .null { meta = nil }
    self.init(
      channel: channel, subscription: nil, timetoken: timetoken,
      publisher: value.member("uuid")?.string,
      meta: meta?.text, customType: value.member("custom_message_type")?.string,
      content: Self.decrypt(content, channel, cipher))
  }
}
