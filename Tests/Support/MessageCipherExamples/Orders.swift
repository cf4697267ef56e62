import Foundation
import MessageCipher

struct Order: Codable, Equatable {
  var item: String
  var count: Int
}

/// The JSON text to publish on channel `orders`, by any protocol.
func encrypt(_ order: Order, with cipher: MessageCipher) throws -> [UInt8] {
  try cipher.encrypt(JSONEncoder().encode(order), channel: "orders")
}

/// The order in a JSON text that was received on channel `orders`; nil for one to ignore.
func decrypt(_ message: [UInt8], with cipher: MessageCipher) throws -> Order? {
  do throws(MessageCipherError) {
    let json = try cipher.decrypt(message, channel: "orders").bytes
    return try? JSONDecoder().decode(Order.self, from: Data(json))
  } catch {
    switch error.code {
    case .decryptionFailed, .formRefused, .notEncrypted, .notJSON:
      return nil  // forged, damaged or foreign: count it, and never answer the sender
    default:
      throw error  // such as .unknownKey: this client lacks a key
    }
  }
}
