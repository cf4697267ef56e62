internal import NIOCore
internal import NIOWebSocket

/// What comes over a link, or its end.
enum STOMPLinkEvent: Sendable {
  case bytes([UInt8])
  case lost(MessagingClientError)
}

/// What carries the frames of one connection.
protocol STOMPLink: Sendable {
  /// The next bytes, or the end; nil if the task is cancelled. For one task at a time.
  func next() async -> STOMPLinkEvent?
  /// Sends a frame behind all that were sent before; a frame that cannot be sent is followed by the end.
  func send(_ frame: EncodedSTOMPFrame)
  func drop()
}

/// Opens the links of a client.
struct STOMPLinkOpener: Sendable {
  let open: @Sendable () async throws(MessagingClientError) -> any STOMPLink

  init(_ open: @escaping @Sendable () async throws(MessagingClientError) -> any STOMPLink) {
    self.open = open
  }

  /// - Throws: `invalidArgument`.
  init(
    _ address: STOMPAddress, _ configuration: STOMPConfiguration, _ log: ClientLog
  ) throws(MessagingClientError) {
    switch address.carrier {
    case .stream:
      let connector = try Connector(
        address.origin, configuration.trust, connectTime: configuration.connectTime, protocols: [])
      self.init { () throws(MessagingClientError) in
        log.connects()
        do throws(MessagingClientError) {
          return STOMPStreamLink(stream: try await connector.openStream(), address: address)
        } catch {
          throw MessagingClientError(error.code, "no connection to \(address)", hint: error.hint)
        }
      }
    case .webSocket:
      let transport = try Transport(
        configuration.server, configuration.trust, configuration.challenges,
        connectTime: configuration.connectTime, client: STOMPClient.logName,
        logger: configuration.logger)
      let path = ["stomp", configuration.application]
      let byteCount = STOMPFrameLimits().bodyByteCount + STOMPFrameLimits().headerByteCount + 1024
      self.init { () throws(MessagingClientError) in
        let webSocket = try await transport.openWebSocket(
          RequestTarget(path), subprotocols: ["v12.stomp"], messageByteCount: byteCount)
        return STOMPWebSocketLink(webSocket: webSocket, address: address)
      }
    }
  }
}

private struct STOMPStreamLink: STOMPLink {
  let stream: ByteStream
  let address: STOMPAddress

  func next() async -> STOMPLinkEvent? {
    switch await stream.next() {
    case .bytes(let bytes): .bytes(bytes)
    case .closed(isTrusted: true):
      .lost(MessagingClientError(.unavailable, "the connection to \(address) was lost"))
    case .closed(isTrusted: false):
      .lost(
        MessagingClientError(
          .untrustedServer, "no protected connection to \(address)",
          hint: "check the server's certificate, and the authorities that the client trusts"))
    case nil: nil
    }
  }

  func send(_ frame: EncodedSTOMPFrame) {
    stream.enqueue(byteCount: frame.byteCount) { frame.write(to: &$0) }
  }

  func drop() { stream.drop() }
}

private struct STOMPWebSocketLink: STOMPLink {
  let webSocket: WebSocket
  let address: STOMPAddress

  func next() async -> STOMPLinkEvent? {
    switch await webSocket.next() {
    case .message(let bytes): .bytes(bytes)
    case .closed(let code, let reason):
      .lost(
        MessagingClientError(
          .unavailable,
          "the WebSocket to \(address) was closed (\(code))"
            + (reason.isEmpty ? "" : ": \(EscapedText(reason).text)")))
    case nil: nil
    }
  }

  func send(_ frame: EncodedSTOMPFrame) {
    webSocket.enqueue(frame.isText ? .text : .binary, byteCount: frame.byteCount) {
      frame.write(to: &$0)
    }
  }

  func drop() { webSocket.drop() }
}
