import MessageCipher
import MessagingClient
import VaultCrypto

/// What an application of PubNub's Objective-C client does, with this library.
func chatFromPubNub(authKey: SharedSecret, cipherKey: borrowing SecretBytes) async throws {
  // configurationWithPublishKey:subscribeKey:, with uuid, authKey and cipherKey
  var configuration = PubNubConfiguration(
    server: "https://messages.example.com", subscribeKey: "sub", publishKey: "pub", userID: "anna")
  configuration.authKey = authKey
  configuration.cipher = try MessageCipher(
    writing: MessageCipher.Key(.aesCBC, cipherKey),
    alsoReading: [MessageCipher.Key(.legacyRandomIV, cipherKey)])
  let client = try PubNubClient(configuration)

  // publish:toChannel:withCompletion:, addChannels:toGroup:, setState:forUUID:onChannel:
  try await client.publish(["text": "hello"], to: "chat")
  try await client.add(["chat", "news"], toGroup: "mine")
  try await client.setState(#"{"mood":"good"}"#, on: ["chat"])

  // historyForChannel:, hereNowForChannel:
  let history = try await client.history(of: ["chat"], maximumCount: 100)
  let present = try await client.hereNow(on: ["chat"])
  print(history.messages.count, present.count)

  // subscribeToChannels:withPresence: and the listener's methods
  let subscription = try client.subscribe(to: ["chat"], groups: ["mine"], withPresence: true)
  for try await event in subscription {
    switch event {
    case .message(let message): print(message.channel, try message.decode([String: String].self))
    case .presence(let presence): print("\(presence.action): \(presence.userID ?? "")")
    case .status(.disconnected): print("the connection is lost")
    default: break
    }
  }
  // unsubscribeFromAll
  try await client.unsubscribeAll()
}
