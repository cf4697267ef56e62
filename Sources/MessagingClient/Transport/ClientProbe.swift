public import NIOCore
internal import NIOHTTP1
internal import StrictJSON

/// Gives a fuzzer access to what a client makes of a server's bytes.
@_spi(Testing)
public enum ClientProbe {
  /// A message of a WebSocket, or its end.
  public enum Event: Equatable {
    /// A message.
    case message([UInt8])
    /// The end, with its code.
    case closed(UInt16)
  }

  /// The handlers of a WebSocket.
  public struct Socket {
    private let inbox = Inbox<WebSocketEvent>()

    /// Adds the handlers to a channel.
    public init(_ channel: any Channel, messageByteCount: Int) throws {
      _ = try WebSocketFrames.configure(channel, inbox, messageByteCount: messageByteCount)
    }

    /// What the reader would get.
    public func events() -> [Event] {
      inbox.drain().map { event in
        switch event {
        case .message(let bytes): .message(bytes)
        case .closed(let code, _): .closed(code)
        }
      }
    }
  }

  /// The handlers of requests, with one request that waits for its answer.
  public final class Exchange {
    /// The status and the body of the answer, or the failure; nil while it waits.
    public private(set) var result: String?

    /// Adds the handlers to a channel, and sends a request.
    public init(_ channel: any Channel, answerByteCount: Int, opensWebSocket: Bool) throws {
      let (protocolSwitch, encoder) = (ProtocolSwitch(), RequestEncoder(host: "h"))
      let exchange = HTTPExchange(encoder, protocolSwitch, isProtected: false)
      try channel.pipeline.syncOperations.addHandlers(
        protocolSwitch, encoder, Connector.decoder(), exchange)
      var request = ClientRequest(target: RequestTarget(path: "/"))
      request.answerByteCount = answerByteCount
      if opensWebSocket {
        request.webSocket = WebSocketOpening(
          handshake: WebSocketOpeningHandshake([]), messageByteCount: answerByteCount)
      }
      let promise = channel.eventLoop.makePromise(of: ClientResponse.self)
      let bound = NIOLoopBound(self, eventLoop: channel.eventLoop)
      promise.futureResult.whenComplete { result in
        bound.value.result =
          switch result {
          case .success(let response): "\(response.status) \(response.body)"
          case .failure(let error): "\(error)"
          }
      }
      exchange.send(request, promise)
    }
  }

  /// What a message of Pusher's protocol says; nil for one that is not in it.
  public static func pusherFrame(_ bytes: [UInt8]) -> String? { PusherFrame(bytes).map { "\($0)" } }

  /// The events of an answer to a poll of PubNub's protocol; nil for no JSON.
  public static func pubNubEvents(_ bytes: [UInt8]) -> String? {
    guard let value = try? JSONReader.value(bytes) else { return nil }
    let events = (value.member("m")?.elements ?? [value]).map { PubNubEvent($0, nil) }
    return "\(events)"
  }
}
