import NIOCore
import Synchronization

@testable import MessagingClient

/// A server in memory: a test reads what a client sends, and writes what it receives.
final class MemoryServer: Sendable {
  private let connections = Inbox<MemoryConnection>()
  private let failures = Mutex<[MessagingClientError]>([])

  var opener: STOMPLinkOpener {
    STOMPLinkOpener { () throws(MessagingClientError) in
      let failure = self.failures.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      if let failure { throw failure }
      let connection = MemoryConnection()
      _ = self.connections.put(connection, byteCount: 0)
      return connection
    }
  }

  /// Lets the next attempt to connect fail.
  func fail(_ error: MessagingClientError) { failures.withLock { $0.append(error) } }

  /// The next connection, before its CONNECT.
  func next() async throws -> MemoryConnection {
    guard let connection = await connections.next() else { throw CancellationError() }
    return connection
  }

  /// The next connection, which is accepted.
  func accept(_ headers: String = "") async throws -> MemoryConnection {
    let connection = try await next()
    _ = try await connection.frame("CONNECT")
    connection.write("CONNECTED\nversion:1.2\n\(headers)\n\0")
    return connection
  }

  /// A client of this server, which waits little.
  func client(_ change: (inout STOMPConfiguration) -> Void = { _ in }) throws -> STOMPClient {
    var configuration = STOMPConfiguration(server: "stomp://127.0.0.1:1", application: "shop")
    configuration.backoff = Backoff(first: .milliseconds(1), maximum: .milliseconds(2))
    change(&configuration)
    let origin = try STOMPAddress(configuration.server).origin
    return STOMPClient(
      configuration, STOMPCredentials(configuration, origin), opener,
      ClientLog(configuration.logger, client: "stomp", server: "memory"))
  }
}

/// One connection, seen from the server.
final class MemoryConnection: STOMPLink {
  private let toClient = Inbox<STOMPLinkEvent>()
  private let frames = Inbox<STOMPFrame?>()
  private let decoder = Mutex(STOMPDecoder())
  private let beats = Mutex(0)
  private let reads = Mutex(0)

  func next() async -> STOMPLinkEvent? {
    reads.withLock { $0 += 1 }
    return await toClient.next()
  }

  func send(_ frame: EncodedSTOMPFrame) {
    var buffer = ByteBuffer()
    frame.write(to: &buffer)
    var rest = Array(buffer.readableBytesView)[...]
    if rest == [UInt8(ascii: "\n")] { return beats.withLock { $0 += 1 } }
    while !rest.isEmpty {
      if let frame = try? decoder.withLock({ try $0.next(&rest) }) {
        _ = frames.put(frame, byteCount: 0)
      }
    }
  }

  func drop() {
    toClient.end(with: .lost(MessagingClientError(.unavailable, "the connection was lost")))
    frames.end(with: nil)
  }

  var heartBeatCount: Int { beats.withLock { $0 } }

  /// How often the client has asked for bytes.
  var readCount: Int { reads.withLock { $0 } }

  func write(_ text: String) { _ = toClient.put(.bytes(Array(text.utf8)), byteCount: 0) }

  /// The next frame of the client, which has this command.
  func frame(_ command: String) async throws -> STOMPFrame {
    guard let frame = await frames.next() ?? nil, frame.command == command else {
      throw MessagingClientError(.invalidAnswer, "the client did not send \(command)")
    }
    return frame
  }

  /// The next frame, and its receipt.
  @discardableResult
  func answer(_ command: String) async throws -> STOMPFrame {
    let frame = try await frame(command)
    if let receipt = frame["receipt"] { write("RECEIPT\nreceipt-id:\(receipt)\n\n\0") }
    return frame
  }

  func message(_ body: String, _ id: String, to subscription: STOMPFrame, _ headers: String = "") {
    write(
      "MESSAGE\nsubscription:\(subscription["id"] ?? "")\nmessage-id:\(id)\nack:\(id)\n\(headers)\n\(body)\0"
    )
  }

  /// Whether the client has closed it.
  func ends() async -> Bool {
    while let frame = await frames.next() { if frame == nil { return true } }
    return false
  }
}

/// What tests of the client ask of its events and errors.
protocol STOMPClientChecks {}

extension STOMPClientChecks {
  func text(_ event: STOMPEvent?) throws -> String? {
    guard case .message(let message)? = event else { return nil }
    return String(decoding: try message.content.get(), as: UTF8.self)
  }

  func message(_ event: STOMPEvent?) throws -> STOMPMessage {
    guard case .message(let message)? = event else {
      throw MessagingClientError(.invalidAnswer, "\(String(describing: event)) is no message")
    }
    return message
  }

  func isSubscribed(_ event: STOMPEvent?) -> Bool {
    if case .status(.subscribed)? = event { true } else { false }
  }

  func code(_ body: () async throws -> Void) async -> MessagingClientError.Code? {
    do {
      try await body()
      return nil
    } catch {
      return (error as? MessagingClientError)?.code
    }
  }
}
