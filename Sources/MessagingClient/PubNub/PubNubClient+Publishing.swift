internal import Foundation
internal import MessageCipher
internal import NIOHTTP1
internal import StrictJSON

/// What a message can have beside its content.
public struct PubNubPublication: Sendable {
  /// For filters and subscribers: the JSON text of an object.
  public var meta: String?
  /// Whether history has the message; nil for the application's own default.
  public var isStored: Bool?
  /// How long history has the message, in hours that are rounded up; nil for the application's own default.
  public var lifetime: Duration?
  /// A name of the kind of message, 3 to 50 characters.
  public var customType: String?
  /// Encrypts this member of the object alone, such as `pn_other` of a push message.
  ///
  /// Nil for the whole message.
  public var encryptedMember: String?

  /// Makes a publication with the defaults.
  public init() {}
}

extension PubNubClient {
  /// Publishes a value as JSON.
  ///
  /// - Returns: the place of the message. On our server the message is durable then.
  /// - Throws: as ``publish(json:to:_:)``, and the error of `JSONEncoder`.
  @discardableResult
  public func publish(
    _ value: some Encodable & Sendable, to channel: String,
    _ publication: PubNubPublication = .init()
  ) async throws -> Timetoken {
    try await publish(json: Self.json(value), to: channel, publication)
  }

  static func json(_ value: some Encodable) throws -> [UInt8] {
    Array(try JSONEncoder().encode(value))
  }

  /// Publishes a JSON text; the client's cipher encrypts it.
  ///
  /// A server that knows deduplication ids gets the message again after a lost answer, and stores it once.
  ///
  /// - Returns: the place of the message. On our server the message is durable then.
  /// - Throws: `outcomeUnknown` if the answer was lost and the server knows no deduplication ids;
  ///   `forbidden`, `refused`, `busy`, `invalidArgument`, and the errors of the connection.
  @discardableResult
  public func publish(
    json: [UInt8], to channel: String, _ publication: PubNubPublication = .init()
  ) async throws(MessagingClientError) -> Timetoken {
    let payload = try encrypted(json, channel, publication.encryptedMember)
    var target = target(
      "publish", try requirePublishKey(), configuration.subscribeKey, "0", channel, "0")
    target.add("meta", publication.meta)
    target.add("store", publication.isStored.map { $0 ? "1" : "0" })
    // PubNub reads 0 as the application's own default.
    target.add(
      "ttl", publication.lifetime.map { String((max($0.components.seconds, 1) - 1) / 3600 + 1) })
    target.add("custom_message_type", publication.customType)
    return try await publish(target, payload)
  }

  /// Sends an event that is never stored, such as a typing mark: at most 64 bytes of JSON.
  public func signal(json: [UInt8], to channel: String) async throws(MessagingClientError) {
    let payload = try encrypted(json, channel, nil)
    var target = target(
      "signal", try requirePublishKey(), configuration.subscribeKey, "0", channel, "0")
    target.append(payload: String(decoding: payload, as: UTF8.self))
    _ = try object(try await call(target), "the signal was not sent")
  }

  private func requirePublishKey() throws(MessagingClientError) -> String {
    guard let key = configuration.publishKey else {
      throw MessagingClientError(
        .invalidArgument, "the client has no publish key",
        hint: "set publishKey in its configuration")
    }
    return key
  }

  private func encrypted(
    _ json: [UInt8], _ channel: String, _ member: String?
  ) throws(MessagingClientError) -> [UInt8] {
    guard let cipher = configuration.cipher else {
      guard member == nil else {
        throw MessagingClientError(
          .invalidArgument, "the client has no cipher for a part of a message")
      }
      return json
    }
    do {
      return try member.map { try cipher.encrypt(member: $0, of: json, channel: channel) }
        ?? cipher.encrypt(json, channel: channel)
    } catch {
      throw MessagingClientError(.invalidArgument, "the message was not encrypted: \(error)")
    }
  }

  private func publish(
    _ target: RequestTarget, _ payload: [UInt8]
  ) async throws(MessagingClientError) -> Timetoken {
    let headers: [(name: String, value: SecretText)] = [
      ("Content-Type", "application/json"),
      (Deduplication.idHeader, SecretText(Deduplication.makeID())),
    ]
    return try await Deduplication.publish(configuration.backoff, transport) {
      () throws(MessagingClientError) in
      let response = try await self.call(target, method: .POST, body: payload, headers: headers)
      let value = try self.object(response, "the message was not published")
      guard value.elements?.first?.integer == 1,
        let timetoken = Timetoken(value.elements?.dropFirst(2).first?.string)
      else {
        throw MessagingClientError(.invalidAnswer, "the answer to a publish has no timetoken")
      }
      return timetoken
    }
  }
}
