import MessageCipher

/// Encrypts what is for clients, and leaves what is for the push service readable.
func encryptPush(_ message: String, with cipher: MessageCipher) throws -> [UInt8] {
  try cipher.encrypt(member: "pn_other", of: message.utf8, channel: "orders")
}

/// The message with the value of `pn_other` decrypted.
func decryptPush(_ message: [UInt8], with cipher: MessageCipher) throws -> [UInt8] {
  try cipher.decrypt(member: "pn_other", of: message, channel: "orders").bytes
}
