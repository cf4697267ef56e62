internal import StrictJSON

// Messages as JSON text, as PubNub's clients publish them.
extension MessageCipher {
  /// Encrypts a whole message.
  ///
  /// - Parameters:
  ///   - json: the JSON text of the message in UTF-8, at most 16 MiB. It is encrypted as it is: a
  ///     string has its quotation marks.
  ///   - channel: where the message will be published, 1 to 1024 bytes. Only a reader who gives the
  ///     same name can decrypt it. The forms of PubNub are not bound to it.
  /// - Returns: the JSON text to publish: a string of base64.
  /// - Throws: `notJSON`, `tooLarge`, `invalidArgument`, `libraryFailure`.
  public func encrypt(
    _ json: some Collection<UInt8>, channel: String
  ) throws(MessageCipherError) -> [UInt8] {
    let binding = try Binding(channel: channel, place: .message)
    let json = try Self.text(json)
    try Self.checkJSON(json, on: channel)
    return Base64String.encode(try seal(json, binding))
  }

  /// Decrypts the result of ``encrypt(_:channel:)``, or a message of a PubNub client.
  ///
  /// - Parameters:
  ///   - message: the JSON text that was received: a string of base64.
  ///   - channel: where the message was published.
  /// - Returns: the JSON text of the message, as its publisher wrote it.
  /// - Throws: `notEncrypted`, `notJSON`, `unknownCryptor`, `formRefused`, `unknownKey`,
  ///   `tooLarge`, `invalidArgument`, `libraryFailure`, and `decryptionFailed` for every other
  ///   reason.
  public func decrypt(
    _ message: some Collection<UInt8>, channel: String
  ) throws(MessageCipherError) -> Decrypted {
    let binding = try Binding(channel: channel, place: .message)
    let text = try Self.text(message)
    return try openText(text, Self.checkJSON(text, on: channel), binding)
  }

  /// Encrypts the value of one member of an object; the rest stays readable for everyone.
  ///
  /// PubNub's clients know this for the member `pn_other` of a mobile push message. Nothing
  /// protects the other members, in any form.
  ///
  /// - Parameters:
  ///   - name: a member of the outermost object, at most 1024 bytes. Its value, in the authenticated
  ///     form, cannot be moved to another member.
  ///   - object: a JSON text. Its other bytes stay as they are.
  ///   - channel: as in ``encrypt(_:channel:)``.
  /// - Returns: the object with a string of base64 as the member's value.
  /// - Throws: `memberMissing`, `notJSON`, `tooLarge`, `invalidArgument`, `libraryFailure`.
  public func encrypt(
    member name: String, of object: some Collection<UInt8>, channel: String
  ) throws(MessageCipherError) -> [UInt8] {
    let binding = try Binding(channel: channel, place: .member(name))
    var text = try Self.text(object)
    let value = try Self.member(name, of: text, on: channel)
    text.replaceSubrange(value, with: Base64String.encode(try seal(Array(text[value]), binding)))
    return try Self.text(text)
  }

  /// Decrypts the value of one member, as ``encrypt(member:of:channel:)`` or a PubNub client
  /// encrypted it.
  ///
  /// - Returns: the object with the member's own value. Only that value has the guarantees of
  ///   ``Decrypted/form``.
  /// - Throws: `memberMissing`; otherwise as ``decrypt(_:channel:)``.
  public func decrypt(
    member name: String, of object: some Collection<UInt8>, channel: String
  ) throws(MessageCipherError) -> Decrypted {
    let binding = try Binding(channel: channel, place: .member(name))
    var text = try Self.text(object)
    let value = try Self.member(name, of: text, on: channel)
    let opened = try openText(text, value, binding)
    text.replaceSubrange(value, with: opened.bytes)
    return Decrypted(bytes: text, form: opened.form)
  }

  /// Decrypts the string of base64 at a place of a text.
  private func openText(
    _ text: [UInt8], _ value: Range<Int>, _ binding: Binding
  ) throws(MessageCipherError) -> Decrypted {
    guard text[value.lowerBound] == UInt8(ascii: "\""),
      let sealed = Base64String.decode(text[value])
    else { throw .notEncrypted(on: binding.channel) }
    let opened = try open(sealed, binding)
    // The same error as for wrong padding, which a forger could otherwise tell from this.
    guard (try? Self.value(of: opened.bytes)) != nil else {
      throw .decryptionFailed(on: binding.channel)
    }
    return opened
  }

  private static func text(
    _ bytes: some Collection<UInt8>
  ) throws(MessageCipherError) -> [UInt8] {
    guard bytes.count <= maximumTextByteCount else {
      throw .tooLarge("message", bytes.count, limit: maximumTextByteCount)
    }
    return Array(bytes)
  }

  private static let maximumDepth = 512

  /// The bytes of a text's value; half a surrogate pair is accepted, because JavaScript writes it.
  private static func value(of text: [UInt8]) throws(JSONFault) -> Range<Int> {
    try JSONText.check(text, maximumDepth: maximumDepth, acceptsHalfPairs: true)
  }

  @discardableResult
  private static func checkJSON(
    _ text: [UInt8], on channel: String
  ) throws(MessageCipherError) -> Range<Int> {
    do throws(JSONFault) {
      return try value(of: text)
    } catch {
      throw .notJSON(error, on: channel)
    }
  }

  private static func member(
    _ name: String, of text: [UInt8], on channel: String
  ) throws(MessageCipherError) -> Range<Int> {
    let value: Range<Int>?
    do throws(JSONFault) {
      value = try JSONText.member(
        name, in: text, maximumDepth: maximumDepth, acceptsHalfPairs: true)
    } catch {
      throw .notJSON(error, on: channel)
    }
    guard let value else { throw .memberMissing(name, on: channel) }
    return value
  }
}
