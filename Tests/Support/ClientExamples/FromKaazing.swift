import MessagingClient
import VaultCrypto

/// What an application of Kaazing's JMS client does, with this library.
func jobsFromKaazing(
  _ prompt: @escaping @Sendable (LoginRequest) async -> LoginCredentials?
) async throws {
  // BasicChallengeHandler with setLoginHandler: and setRealmLoginHandler:
  var basic = BasicChallengeHandler(ClosureLoginHandler(prompt), answersApplicationBasic: true)
  basic.setLoginHandler(ClosureLoginHandler(prompt), forRealm: "orders")

  // DispatchChallengeHandler with register:challengeHandler:, as the factory's default
  let dispatch = DispatchChallengeHandler()
  try dispatch.register(basic, at: "https://messages.example.com:443/*")

  // JMSConnectionFactory, createConnectionWithUser:password:, createSession
  var configuration = STOMPConfiguration(
    server: "https://messages.example.com", application: "shop", login: nil)
  configuration.challenges = ClientChallenges(dispatch)
  let client = try STOMPClient(configuration)

  // createProducer, createTextMessage and send
  try await client.send(Array("order 1".utf8), to: "/queue/orders", contentType: "text/plain")

  // createConsumer with CLIENT_ACKNOWLEDGE, and the message listener
  for try await case .message(let message) in try await client.subscribe(to: "/queue/orders") {
    print(try message.content.get())
    try await message.acknowledge()
  }
  await client.close()
}
