internal import VaultCrypto

extension MessageCipher {
  /// The keys with which a cipher reads, at most one of them for each message.
  struct Readers: Sendable {
    private let keys: [Key]

    /// - Throws: `invalidArgument` if a message could be under two of these keys.
    init(_ keys: [Key]) throws(MessageCipherError) {
      self.keys = keys
      for family in [SealedMessage.Family.aesCBC, .legacy] {
        let rivals = keys.filter { $0.cryptor.family == family }
        if rivals.count > 1 { throw .indistinguishable(rivals.map(\.form)) }
      }
    }

    /// The cryptor for a message.
    ///
    /// - Throws: `formRefused` if there is none for its form, `unknownKey` if it names another key.
    func cryptor(
      for message: SealedMessage, on channel: String
    ) throws(MessageCipherError) -> any Cryptor {
      let candidates = keys.map(\.cryptor).filter { $0.family == message.family }
      guard !candidates.isEmpty else { throw .formRefused(message.family, on: channel) }
      guard message.family == .xaes256GCM else { return candidates[0] }
      guard message.isComplete else { throw .decryptionFailed(on: channel) }
      guard let cryptor = candidates.first(where: { $0.keyID == message.keyID }) else {
        throw .unknownKey(message.keyID.hexadecimal, on: channel)
      }
      return cryptor
    }
  }
}
