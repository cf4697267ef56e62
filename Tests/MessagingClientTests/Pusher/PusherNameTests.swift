import TestSupport
import Testing

@testable import MessagingClient

/// What a client signs, or passes on to be signed, for a server that it need not trust.
@Suite struct PusherNameTests {
  private static let authorizer = SecretKeyAuthorizer(
    key: "key", secretKey: SharedSecret(secret("secret")))

  @Test(arguments: [
    ("1.2", "private-a"), ("123456789.987654321", "presence-cache-A_-=@,.;9"), ("1.2", "a"),
    ("1.2", "private-encrypted-a"),
  ])
  func `the secret key signs the socket ids and channels of Pusher`(
    socketID: String, channel: String
  ) throws {
    let request = ChannelAuthorizationRequest(channel: channel, socketID: socketID)
    #expect(try Self.authorizer.authorize(request).auth.hasPrefix("key:"))
  }

  @Test(arguments: [
    ("POST\n/apps/1/events\nauth_key=key&auth_timestamp=1&auth_version=1.0&body_md5=0", "a"),
    ("", "private-a"), ("1", "private-a"), ("1.", "private-a"), (".2", "private-a"),
    ("1.2.3", "private-a"), ("1.2:", "private-a"), ("1.2:private-b", "private-a"),
    ("1.2\n", "private-a"), ("-1.2", "private-a"), ("1.\u{0662}", "private-a"),
    ("\(String(repeating: "1", count: 63)).2", "private-a"), ("1.2::user", "private-a"),
    ("1.2", ""), ("1.2", ":user:{}"), ("1.2", "private-a:b"), ("1.2", "private-a\n"),
    ("1.2", "private-é"), ("1.2", "#server-to-user-1"),
    ("1.2", "private-" + String(repeating: "a", count: 157)),
  ])
  func `the secret key signs nothing else, such as a call of the HTTP API`(
    socketID: String, channel: String
  ) {
    let request = ChannelAuthorizationRequest(channel: channel, socketID: socketID)
    let error = #expect(throws: MessagingClientError.self) {
      try Self.authorizer.authorize(request)
    }
    #expect(error?.code == .invalidArgument)
  }

  @Test(arguments: [
    "", "1", "1.2:private-b", #"POST\n/apps/1/events\n"#, #"1.2\n"#, "1.2.3", #"1.\u0662"#,
  ])
  func `a server that names another form of socket id establishes no connection`(id: String) {
    let frame = #"{"event":"pusher:connection_established","data":{"socket_id":"\#(id)"}}"#
    #expect(PusherFrame(Array(frame.utf8)) == nil)
  }
}
