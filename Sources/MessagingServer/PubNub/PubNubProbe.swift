internal import AccessControl
internal import StrictJSON

/// Gives a fuzzer access to the reader of requests.
@_spi(Testing)
public enum PubNubProbe {
  /// What a request asks for.
  public struct Reading: Sendable, Equatable {
    /// The subscribe key of its application.
    public let subscribeKey: String
    /// The user; nil if the request names none.
    public let userID: String?
    /// The channels in their order.
    public let channels: [String]
    /// The channel groups in their order.
    public let groups: [String]
    /// The message of a publication; empty for another call.
    public let payload: [UInt8]
    /// The whole call, to be compared; it needs SWIFT_DETERMINISTIC_HASHING for its sets.
    public let call: String

    init(_ request: PubNubRequest) {
      subscribeKey = request.subscribeKey
      userID = request.userID
      let (channels, groups) = request.call.names
      self.channels = channels.map(\.text)
      self.groups = groups.map(\.text)
      if case .publish(let call) = request.call { payload = call.payload } else { payload = [] }
      call = "\(request.family) \(request.call)"
    }
  }

  /// A refusal in the shape of its family.
  public struct Refusal: Error, Equatable {
    /// The status of HTTP.
    public let status: Int
    /// The text for the SDK.
    public let message: String
  }

  /// The most names in a list.
  public static var maximumNameCount: Int { PubNubRequest.maximumNameCount }

  /// The most bytes of a body, decompressed.
  public static var maximumBodyByteCount: Int { GrantTokenRequest.maximumByteCount }

  /// Reads a request; nil if its path is none of PubNub's.
  ///
  /// - Parameter body: as it was sent, possibly compressed.
  public static func read(
    method: String, target: [UInt8], body: [UInt8]
  ) throws(Refusal) -> Reading? {
    do throws(PubNubRefusal) {
      return try PubNubService.parse(HTTPRequest(method: method, target: target, body: body))
        .map { Reading($0) }
    } catch {
      throw Refusal(status: error.status, message: error.message)
    }
  }
}

extension PubNubCall {
  /// The channels and groups that a call names.
  fileprivate var names: (channels: [ChannelName], groups: [GroupName]) {
    switch self {
    case .time, .whereNow, .access, .unavailable: ([], [])
    case .publish(let call): ([call.channel], [])
    case .subscribe(let call): (call.listener.channels, call.listener.groups)
    case .heartbeat(let call), .leave(let call), .getState(let call, _), .setState(let call, _, _):
      (call.channels, call.groups)
    case .hereNow(let call): (call.channels, call.groups)
    case .history(let call), .fetch(let call), .deleteMessages(let call): (call.channels, [])
    case .messageCounts(let places): (places.map(\.channel), [])
    case .groups(.list): ([], [])
    case .groups(.channels(let group)), .groups(.removeGroup(let group)): ([], [group])
    case .groups(.add(let channels, let group)), .groups(.remove(let channels, let group)):
      (channels, [group])
    }
  }
}
