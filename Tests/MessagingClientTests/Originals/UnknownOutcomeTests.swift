import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

/// A publication whose answer is lost: an original knows no deduplication ids, so that it is published once, and its
/// outcome is reported as not known.
@Suite(.timeLimit(.minutes(10))) struct UnknownOutcomeTests {
  enum Loss: CaseIterable {
    /// The connection ends behind the request.
    case closed
    /// The connection is reset behind the request.
    case reset
    /// No answer comes.
    case silence
  }

  enum Original: CaseIterable {
    case pubNub
    case pusher
    case rabbitMQ
    case activeMQ
  }

  /// All pairs but one: a publisher of Pusher's API waits ten seconds for an answer.
  static let cases = Original.allCases.flatMap { original in Loss.allCases.map { (original, $0) } }
    .filter { $0 != (.pusher, .silence) }

  @Test(arguments: cases)
  func `a publication with a lost answer is not repeated, and its outcome is not known`(
    original: Original, loss: Loss
  ) async throws {
    let publications = Mutex(0)
    try await HostileServer.run { peer in
      let isPublished =
        switch original {
        case .pubNub, .pusher: Self.takeHTTP(original, peer)
        case .rabbitMQ, .activeMQ: Self.takeSTOMP(original, peer)
        }
      guard isPublished else { return }
      publications.withLock { $0 += 1 }
      switch loss {
      case .closed: break
      case .reset: peer.reset()
      case .silence: peer.wait()
      }
    } _: { server in
      let error = await failure { try await Self.publish(original, server) }
      #expect(error?.code == .outcomeUnknown, "\(error?.description ?? "no error")")
      // A call that repeats returns only after the last time.
      #expect(publications.withLock { $0 } == 1)
    }
  }

  /// Answers what is no publication; false at the end of the connection.
  private static func takeHTTP(_ original: Original, _ peer: HostileServer.Peer) -> Bool {
    while let request = peer.request() {
      if request.line.hasPrefix("POST ") { return true }
      // The client asks whether the server knows the ids of publications.
      if original == .pubNub, let time = try? RecordedAnswer("time") {
        for part in time.parts { peer.send(part) }
      } else {
        peer.send(answer("404 Not Found", ["Content-Type: text/plain"], "Not found\n"))
      }
    }
    return false
  }

  private static func takeSTOMP(_ original: Original, _ peer: HostileServer.Peer) -> Bool {
    let name = original == .rabbitMQ ? "rabbitmq-connected" : "activemq-connected"
    var stomp = STOMPPeer(peer)
    guard let connected = try? STOMPRecording(name) else { return false }
    connected.play(peer, &stomp)
    return stomp.frame()?.command == "SEND"
  }

  private static func publish(_ original: Original, _ server: HostileServer) async throws {
    let backoff = Backoff(first: .milliseconds(5), maximum: .milliseconds(10))
    switch original {
    case .pubNub:
      var configuration = PubNubConfiguration(
        server: server.url, subscribeKey: "sub", publishKey: "pub", userID: "anna")
      configuration.answerTime = .seconds(2)
      configuration.backoff = backoff
      try await PubNubClient(configuration).publish(json: [0x31], to: "orders")
    case .pusher:
      try await PusherOriginalTests.publisher(server.url)
        .trigger("new", data: "1", on: ["orders"])
    case .rabbitMQ, .activeMQ:
      var configuration = STOMPConfiguration(
        server: "stomp://127.0.0.1:\(server.port)", application: "/")
      configuration.answerTime = .seconds(2)
      configuration.backoff = backoff
      try await STOMPClient(configuration).send([0x31], to: "/queue/orders")
    }
  }
}
