import MessagingClient

/// What an application of libPusher does, with this library.
func ordersFromPusher(session: SharedSecret) async throws {
  // pusherWithKey:delegate:encrypted:, authorizationURL and pusher:willAuthorizeChannel:withAuthOperation:
  let authorizer = try ServerChannelAuthorizer(url: "https://example.com/pusher/auth") {
    request, fields in
    fields.headers["X-Channel"] = request.channel
    fields.secretHeaders["Authorization"] = session
  }
  let client = try PusherClient(
    PusherConfiguration(
      server: "https://messages.example.com", key: "key", authorizer: authorizer))

  // subscribeToPresenceChannelNamed: adds "presence-"; here the name is whole.
  let orders = try await client.subscribe(to: "presence-orders")
  try await orders.trigger("client-typing", json: Array(#"{"on":true}"#.utf8))

  // bindToEventNamed:handleWithBlock:, and the delegate of the presence channel
  for try await event in orders {
    switch event {
    case .message(let message) where message.name == "created": print(message.content)
    case .memberAdded(let member): print("\(member.userID) of \(orders.members.count)")
    case .memberRemoved(let userID): print("\(userID) has left")
    case .status(let status): print("\(status)")
    default: break
    }
  }
  await orders.unsubscribe()
  await client.close()
}
