import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

/// The STOMP client and what RabbitMQ and ActiveMQ say: `Fixtures/originals/stomp`.
@Suite(.timeLimit(.minutes(10))) struct STOMPOriginalTests {
  private static func client(
    _ address: String, _ change: (inout STOMPConfiguration) -> Void = { _ in }
  ) throws -> STOMPClient {
    var configuration = STOMPConfiguration(
      server: address, application: "/",
      login: .credentials(login: "guest", passcode: SharedSecret(secret("guest"))))
    configuration.backoff = Backoff(first: .milliseconds(5), maximum: .milliseconds(10))
    change(&configuration)
    return try STOMPClient(configuration)
  }

  @Test(arguments: ["rabbitmq-messages", "activemq-messages"])
  func `messages have their headers, are released and acknowledged by their ids`(
    recording: String
  ) async throws {
    try await STOMPRecording.play([recording]) { address, server in
      let client = try Self.client(address)
      var events = try await client.subscribe(to: "/queue/orders").makeAsyncIterator()
      var ids: [String] = []
      for isRedelivered in [false, true] {
        var event = try await events.next()
        if case .status? = event { event = try await events.next() }
        guard case .message(let message)? = event else {
          Issue.record("no message")
          return
        }
        #expect(try message.content.get() == Array("two books".utf8))
        #expect(message.contentType == "text/plain" && message.headers["colour"] == "red:blue")
        #expect(message.isRedelivered == isRedelivered && message.attempt == nil)
        #expect(!message.messageID.contains("\\"))
        ids.append(message.headers["ack"] ?? "")
        if isRedelivered { try await message.acknowledge() } else { try await message.release() }
      }
      await client.close()
      // STOMP 1.2 escapes the colons of a value.
      let escaped = ids.map { $0.replacing(":", with: "\\c") }
      #expect(server.text.contains("NACK\nid:\(escaped[0])\n"))
      #expect(server.text.contains("\0ACK\nid:\(escaped[1])\n"))
      #expect(server.connectionCount == 1)
    }
  }

  enum Operation: Sendable {
    case send
    case subscribe

    func run(_ client: STOMPClient) async throws {
      switch self {
      case .send: try await client.send([0x31], to: "/queue/orders")
      case .subscribe: _ = try await client.subscribe(to: "/queue/orders")
      }
    }
  }

  /// A message that RabbitMQ refuses can have been taken, because its errors name no request.
  ///
  /// It sends the receipt of a refused subscription behind the error.
  @Test(
    arguments: [
      ("rabbitmq-wrong-password", .send, .unauthenticated, "Bad CONNECT"),
      ("rabbitmq-unknown-host", .send, .refused, "Bad CONNECT"),
      ("rabbitmq-subscription-refused", .subscribe, .forbidden, "access_refused"),
      ("rabbitmq-subscription-not-found", .subscribe, .refused, "not_found"),
      ("rabbitmq-unknown-destination", .send, .outcomeUnknown, "Unknown destination"),
      ("activemq-wrong-password", .send, .unauthenticated, "or password is invalid."),
      ("activemq-send-refused", .send, .forbidden, "is not authorized to write to"),
      ("activemq-subscription-refused", .subscribe, .forbidden, "is not authorized to read from"),
    ] as [(String, Operation, MessagingClientError.Code, String)])
  func `an error of a server has its kind and its text`(
    recording: String, operation: Operation, code: MessagingClientError.Code, text: String
  ) async throws {
    let log = RecordingLog()
    try await STOMPRecording.play([recording]) { address, server in
      let client = try Self.client(address) { $0.logger = log.logger }
      let error = await failure { try await operation.run(client) }
      #expect(error?.code == code)
      #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
      await client.close()
      // Before the client waits to connect again, it logs how long.
      #expect(!log.lines.contains { $0.message.hasPrefix("waiting") })
      #expect(server.connectionCount == 1)
    }
  }

  @Test(arguments: ["rabbitmq-wrong-password", "activemq-wrong-password"])
  func `a user can correct a password that a server refuses, and not without end`(
    recording: String
  ) async throws {
    let refusalCounts = Mutex<[Int]>([])
    try await STOMPRecording.play([recording]) { address, _ in
      let client = try Self.client(address) {
        $0.login = .handler(
          ClosureLoginHandler { request in
            refusalCounts.withLock { $0.append(request.refusalCount) }
            return LoginCredentials(
              user: secret("guest"), password: secret("wrong \(request.refusalCount)"))
          })
      }
      for _ in 0..<2 {
        let error = await failure { try await Operation.send.run(client) }
        #expect(error?.code == .unauthenticated)
      }
      await client.close()
    }
    #expect(refusalCounts.withLock { $0 } == [0, 1, 2])
  }
}
