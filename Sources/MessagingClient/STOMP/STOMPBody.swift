internal import MessageCipher

/// The bodies of messages, as a client's cipher encrypts them.
enum STOMPBody {
  /// The channel of a destination: `/topic/CHANNEL`, `/queue/CHANNEL` or `/queue/CHANNEL/CONSUMER`.
  static func channel(of destination: String) -> String? {
    let parts = destination.split(separator: "/", omittingEmptySubsequences: false)
    guard (3...4).contains(parts.count), parts[0].isEmpty, !parts[2].isEmpty,
      parts[1] == "topic" ? parts.count == 3 : parts[1] == "queue"
    else { return nil }
    return String(parts[2])
  }

  /// Encrypts JSON as PubNub's clients do, so that they can read it, and another body as bytes.
  ///
  /// - Throws: `invalidArgument`.
  static func seal(
    _ body: [UInt8], to destination: String, _ cipher: MessageCipher?
  ) throws(MessagingClientError) -> [UInt8] {
    guard let cipher else { return body }
    guard let channel = channel(of: destination) else {
      throw MessagingClientError(
        .invalidArgument, "the destination names no channel, to which a cipher binds messages",
        hint: "use /topic/CHANNEL or /queue/CHANNEL")
    }
    do throws(MessageCipherError) {
      do throws(MessageCipherError) {
        return try cipher.encrypt(body, channel: channel)
      } catch  where error.code == .notJSON {
        return try cipher.encrypt(bytes: body, channel: channel)
      }
    } catch {
      throw MessagingClientError(.invalidArgument, "the message was not encrypted: \(error)")
    }
  }

  /// Decrypts a body.
  static func open(
    _ body: [UInt8], on destination: String, _ cipher: MessageCipher?
  ) throws -> [UInt8] {
    guard let cipher else { return body }
    let channel = channel(of: destination) ?? ""
    // Encrypted JSON is a string of JSON, with which no encrypted bytes begin.
    if body.first == UInt8(ascii: "\"") { return try cipher.decrypt(body, channel: channel).bytes }
    return try cipher.decrypt(bytes: body, channel: channel).bytes
  }
}
