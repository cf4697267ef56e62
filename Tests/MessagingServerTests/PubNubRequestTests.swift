import AccessControl
import Testing

@testable import MessagingServer

/// What the fuzz harness `target` found.
@Suite struct PubNubRequestTests {
  private func request(_ target: String) throws -> PubNubRequest? {
    try PubNubRequest(RawRequest(method: "GET", target: Array(target.utf8)))
  }

  @Test(arguments: ["*", "x", "", "http://host/"])
  func `a path without a slash before its first word is none of PubNub's`(start: String) throws {
    #expect(try request("/v2/subscribe/sub/c/0") != nil)
    #expect(try request("\(start)v2/subscribe/sub/c/0") == nil)
    #expect(try request("\(start)time/0") == nil)
  }

  @Test(arguments: [
    "/v2/objects/s%75b/uuids", "/v1/files/s%75b/channels", "/v1/push/sub-key/s%75b/devices/d",
    "/v1/message-actions/s%75b/channel/c",
  ])
  func `a part that the server does not have takes no name from its path`(target: String) throws {
    let request = try #require(try request(target))
    #expect(request.subscribeKey.isEmpty)
    guard case .unavailable = request.call else {
      Issue.record("\(request.call)")
      return
    }
  }
}
