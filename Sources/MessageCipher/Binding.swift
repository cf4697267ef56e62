extension MessageCipher {
  /// What a message is bound to in the authenticated form: its channel, and its place there.
  struct Binding {
    /// The part of a message that was encrypted.
    enum Place {
      /// Bytes that are no text, such as a file.
      case bytes
      /// A whole message.
      case message
      /// The value of this member of an object.
      case member(String)
    }

    let channel: String
    private let place: Place

    /// - Throws: `invalidArgument` for a name that is empty or too long.
    init(channel: String, place: Place) throws(MessageCipherError) {
      guard 1...MessageCipher.maximumChannelByteCount ~= channel.utf8.count else {
        throw .channelLength(channel.utf8.count)
      }
      if case .member(let name) = place,
        name.utf8.count > MessageCipher.maximumMemberByteCount
      {
        throw .memberLength(name.utf8.count)
      }
      self.channel = channel
      self.place = place
    }

    /// The associated data that follows the header.
    var bytes: [UInt8] {
      let count = UInt16(channel.utf8.count)
      let channel = [UInt8(count >> 8), UInt8(count & 0xFF)] + channel.utf8
      return switch place {
      case .bytes: channel + [0]
      case .message: channel + [1]
      case .member(let name): channel + [2] + name.utf8
      }
    }
  }
}
