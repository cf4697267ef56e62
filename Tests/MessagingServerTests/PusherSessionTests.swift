import AccessControl
import Foundation
import MessagingQueue
import Testing

@testable import MessagingServer
@testable import Realtime

/// The state machine of a connection, without a socket and without a clock.
struct PusherSessionTests {
  private static let me = "1.2"
  private var session = PusherSession(me, PusherLimits())
  private var now: UInt64 = 1_000_000_000
  private let application: ApplicationID

  init() throws { application = try ApplicationID(1) }

  // MARK: - Support

  private mutating func receive(_ text: String) -> [PusherSession.Action] {
    session.receive(Array(text.utf8), atNanoseconds: now)
  }

  private mutating func subscribing(_ channel: String, _ data: String? = nil) -> [PusherSession
    .Action]
  {
    let quoted = data.map { #","channel_data":"\#($0.replacing("\"", with: "\\\""))""# } ?? ""
    return receive(
      #"{"event":"pusher:subscribe","data":{"channel":"\#(channel)","auth":"x"\#(quoted)}}"#)
  }

  /// Subscribes as a connection does that is allowed to.
  private mutating func subscribe(
    _ channel: String, _ data: String? = nil, as principal: Principal = .anonymous,
    until end: Date? = nil
  ) throws -> [PusherSession.Action] {
    guard case .authorize(let request) = subscribing(channel, data).first else {
      throw Missing()
    }
    guard case .join(let joined, _) = session.authorized(request, principal, until: end).first
    else {
      throw Missing()
    }
    return session.joined(joined, nil)
  }

  private struct Missing: Error {}

  private func sent(_ actions: [PusherSession.Action]) -> [PusherEvent] {
    actions.compactMap { if case .send(let event) = $0 { event } else { nil } }
  }

  private func logged(
    _ text: String, at place: Int64, in channel: String = "a",
    _ change: (inout MessageNotes) -> Void = { _ in }
  ) throws -> LogMessage {
    var notes = MessageNotes()
    change(&notes)
    return LogMessage(
      timetoken: try #require(Timetoken(rawValue: 17_000_000_000_000_000 + place)),
      channel: try Channel("shop/\(channel)"), payload: Array(text.utf8), headers: notes.headers)
  }

  private func message(
    _ text: String, at place: Int64, in channel: String = "a",
    _ change: (inout MessageNotes) -> Void = { _ in }
  ) throws -> PusherMessage {
    try #require(PusherMessage(try logged(text, at: place, in: channel, change)))
  }

  private func texts(_ actions: [PusherSession.Action]) -> [String] {
    sent(actions).compactMap {
      if case .message(let message) = $0 {
        String(decoding: message.data, as: UTF8.self)
      } else {
        nil
      }
    }
  }

  // MARK: - Frames

  @Test mutating func `pysher pings before anything else, and gets a pong`() {
    #expect(sent(receive(#"{"event":"pusher:ping","data":""}"#)) == [.pong])
    #expect(receive(#"{"event":"pusher:pong"}"#).isEmpty)
  }

  @Test mutating func `what is not valid is reported without a code, and ends nothing`() {
    for text in ["{", #"{"event":"x"}"#, #"{"event":"pusher:signin","data":{}}"#] {
      guard case .send(.error(nil, _)) = receive(text).first else {
        Issue.record("\(text) is not reported")
        continue
      }
    }
  }

  @Test mutating func `a flood of frames ends the connection`() {
    var endings = 0
    for _ in 0..<2_100 {
      if case .end(.tooManyFrames) = receive(#"{"event":"pusher:ping"}"#).first { endings += 1 }
    }
    #expect(endings == 100)
  }

  // MARK: - Subscriptions

  @Test mutating func `a subscription is answered once it is allowed, and a repeated one again`()
    throws
  {
    let answer = [PusherEvent.subscribed(channel: "a", roster: nil)]
    #expect(sent(try subscribe("a")) == answer)
    #expect(sent(try subscribe("a")) == answer)
    #expect(session.channelCount == 1)
  }

  @Test mutating func `a client that subscribes again as another user has left as the first one`()
    throws
  {
    _ = try subscribe("presence-a", #"{"user_id":"ana"}"#)
    let again = subscribing("presence-a", #"{"user_id":"bob"}"#)
    guard case .authorize(let request) = again.first else { throw Missing() }
    let actions = session.authorized(request, .anonymous, until: nil)
    guard actions.count == 2, case .leave(let left) = actions[0],
      case .join(let joined, let member?) = actions[1]
    else { throw Missing() }
    #expect(left == joined)
    #expect(member.id == "bob")
    _ = session.joined(joined, nil)
    let event = receive(#"{"event":"client-x","channel":"presence-a","data":"1"}"#)
    guard case .relay(let relayed) = event.first else { throw Missing() }
    #expect(relayed.userID == "bob")
    #expect(session.channelCount == 1)
  }

  @Test mutating func `an unsubscription has no answer, and ends the events`() throws {
    _ = try subscribe("a")
    #expect(texts(session.deliver(try message("1", at: 100))) == ["1"])
    let actions = receive(#"{"event":"pusher:unsubscribe","data":{"channel":"a"}}"#)
    #expect(sent(actions).isEmpty)
    guard case .leave = actions.first else { throw Missing() }
    #expect(session.deliver(try message("2", at: 200)).isEmpty)
    #expect(receive(#"{"event":"pusher:unsubscribe","data":{"channel":"a"}}"#).isEmpty)
  }

  @Test mutating func `a refusal is an event of the channel`() throws {
    guard case .authorize(let request) = subscribing("private-a").first else { throw Missing() }
    let refusal = PusherRefusal.unauthorized("why")
    #expect(
      sent(session.refused(request.channel, refusal)) == [
        .refused(channel: "private-a", refusal)
      ])
    #expect(session.channelCount == 0)
  }

  @Test mutating func `a presence channel needs channel_data with a user`() throws {
    for data in [nil, "", "{}"] as [String?] {
      guard case .send(.refused("presence-a", let refusal)) = subscribing("presence-a", data).first
      else { throw Missing() }
      #expect(refusal.status == 401)
    }
    guard
      case .authorize(let request) = subscribing("presence-a", #"{"user_id":"u"}"#).first
    else { throw Missing() }
    #expect(request.member?.id == "u")
  }

  @Test mutating func `the channels of a connection are bounded`() throws {
    for number in 0..<500 { _ = try subscribe("a\(number)") }
    guard case .send(.refused("b", let refusal)) = subscribing("b").first else { throw Missing() }
    #expect(refusal.type == "LimitReached")
    #expect(sent(try subscribe("a7")).count == 1)
  }

  @Test mutating func `a right that has ended ends its subscription alone`() throws {
    _ = try subscribe("a")
    _ = try subscribe("b", until: Date(timeIntervalSince1970: 100))
    #expect(session.nextEnd == Date(timeIntervalSince1970: 100))
    let actions = session.recheck({ $1 != nil }, { _, _ in .refused(.noGrant) }) { _, _ in
      .forbidden("why")
    }
    #expect(sent(actions) == [.refused(channel: "b", .forbidden("why"))])
    #expect(session.channelCount == 1)
    #expect(session.nextEnd == nil)
  }

  // MARK: - Events

  @Test mutating func `an event of another protocol is a message, and one without UTF-8 base64`()
    throws
  {
    _ = try subscribe("a")
    let event = try message(#"{"x":1}"#, at: 100)
    #expect(sent(session.deliver(event)) == [.message(event)])
    #expect(
      String(decoding: event.bytes, as: UTF8.self)
        == #"{"event":"message","channel":"a","data":"{\"x\":1}"}"#)
    let bytes = LogMessage(
      timetoken: event.timetoken, channel: try Channel("shop/a"), payload: [0xFF], headers: [:])
    #expect(PusherMessage(bytes)?.data == Array("/w==".utf8))
  }

  @Test mutating func `the excluded connection does not get an event, presence none does`() throws {
    _ = try subscribe("a")
    #expect(session.deliver(try message("1", at: 100) { $0.excludedSocketID = "1.2" }).isEmpty)
    #expect(PusherMessage(try logged("1", at: 100) { $0.kind = .presence }) == nil)
    #expect(
      texts(session.deliver(try message("1", at: 100) { $0.excludedSocketID = "1.20" })) == ["1"])
  }

  @Test func `a user id comes from the signature, not from a publisher's own name`() throws {
    let named = try message("1", at: 100) {
      $0.publisher = "admin"
      $0.eventName = "e"
    }
    #expect(
      String(decoding: named.bytes, as: UTF8.self) == #"{"event":"e","channel":"a","data":"1"}"#)
    let signed = try message("1", at: 100) { $0.userID = "u" }
    #expect(
      String(decoding: signed.bytes, as: UTF8.self)
        == #"{"event":"message","channel":"a","data":"1","user_id":"u"}"#)
  }

  @Test func `an event is made once for all subscribers, and one of presence for none`() throws {
    let broadcast = PusherBroadcast()
    let event = LiveEvent(try logged("1", at: 100), isStored: true)
    let other = LiveEvent(try logged("2", at: 100), isStored: true)
    let presence = LiveEvent(try logged("1", at: 100) { $0.kind = .presence }, isStored: false)
    for _ in 0..<2 {
      let made = (0..<2).map { _ in broadcast.message(of: event)?.bytes ?? [] }
      #expect(
        made[0].withUnsafeBytes { $0.baseAddress } == made[1].withUnsafeBytes { $0.baseAddress })
      #expect(broadcast.message(of: event)?.data == [0x31])
      #expect(broadcast.message(of: other)?.data == [0x32])
      #expect(broadcast.message(of: presence) == nil)
    }
  }

  // MARK: - Cache channels

  @Test mutating func `a cache channel gives the newest message once, then what came since`() throws
  {
    let actions = try subscribe("cache-a")
    guard case .readCache(let channel, let number) = actions.last else { throw Missing() }
    #expect(session.deliver(try message("1", at: 100, in: "cache-a")).isEmpty)
    #expect(session.deliver(try message("2", at: 200, in: "cache-a")).isEmpty)
    #expect(session.deliver(try message("3", at: 300, in: "cache-a")).isEmpty)
    let newest = try message("2", at: 200, in: "cache-a")
    #expect(texts(session.didReadCache(channel, number: number, newest)) == ["2", "3"])
    #expect(texts(session.deliver(try message("4", at: 400, in: "cache-a"))) == ["4"])
  }

  @Test mutating func `a message that the read has found is not given again`() throws {
    guard case .readCache(let channel, let number) = try subscribe("cache-a").last else {
      throw Missing()
    }
    let newest = try message("1", at: 100, in: "cache-a")
    #expect(texts(session.didReadCache(channel, number: number, newest)) == ["1"])
    #expect(session.deliver(newest).isEmpty)
  }

  @Test mutating func `an empty cache is a miss, before what came since`() throws {
    guard case .readCache(let channel, let number) = try subscribe("cache-a").last else {
      throw Missing()
    }
    _ = session.deliver(try message("1", at: 100, in: "cache-a"))
    let events = sent(session.didReadCache(channel, number: number, nil))
    #expect(events.first == .cacheMiss(channel: "cache-a"))
    #expect(events.count == 2)
  }

  @Test func `a cache has the newest message that history shows, for 30 minutes`() throws {
    let hidden = try logged("2", at: 200) { $0.isHidden = true }
    let shown = try logged("1", at: 100)
    let date = shown.timetoken.date
    #expect(PusherCache.message(in: [], at: date) == nil)
    #expect(PusherCache.message(in: [hidden], at: date) == nil)
    #expect(PusherCache.message(in: [hidden, shown], at: date + 1799)?.payload == [0x31])
    #expect(PusherCache.message(in: [hidden, shown], at: date + 1801) == nil)
  }

  @Test mutating func `the read of an earlier subscription is ignored`() throws {
    guard case .readCache(let channel, let number) = try subscribe("cache-a").last else {
      throw Missing()
    }
    _ = receive(#"{"event":"pusher:unsubscribe","data":{"channel":"cache-a"}}"#)
    _ = try subscribe("cache-a")
    #expect(session.didReadCache(channel, number: number, nil).isEmpty)
  }

  // MARK: - Client events

  private mutating func trigger(
    _ channel: String, name: String = "client-x", data: String = "1"
  ) -> PusherSession.Action? {
    receive(#"{"event":"\#(name)","channel":"\#(channel)","data":"\#(data)","user_id":"admin"}"#)
      .first
  }

  @Test mutating func `a client event has the user of the subscription, and not the sender's`()
    throws
  {
    _ = try subscribe("presence-a", #"{"user_id":"u"}"#)
    guard case .relay(let event) = trigger("presence-a") else { throw Missing() }
    #expect((event.userID, event.name, event.data) == ("u", "client-x", [0x31]))
    let notes = event.notes(excluding: Self.me)
    #expect(notes.kind == .signal)
    #expect(notes.excludedSocketID == Self.me)
    #expect(notes.userID == "u")
  }

  @Test(arguments: ["a", "cache-a", "private-encrypted-a", "private-b"])
  mutating func `client events need a subscription to a private or presence channel`(
    channel: String
  ) throws {
    for name in ["a", "cache-a", "private-encrypted-a"] { _ = try subscribe(name) }
    guard case .send(.error(nil, _)) = trigger(channel) else { throw Missing() }
  }

  @Test mutating func `the eleventh client event of a second is dropped with 4301`() throws {
    _ = try subscribe("private-a")
    for _ in 0..<10 {
      guard case .relay = trigger("private-a") else { throw Missing() }
    }
    guard case .send(.error(4301, _)) = trigger("private-a") else { throw Missing() }
    now += 100_000_000
    guard case .relay = trigger("private-a") else { throw Missing() }
  }

  @Test mutating func `a client event has at most 10,240 bytes, and a name of 200 characters`()
    throws
  {
    _ = try subscribe("private-a")
    let most = String(repeating: "é", count: 5120)
    guard case .relay = trigger("private-a", data: most) else { throw Missing() }
    guard case .send(.error(nil, _)) = trigger("private-a", data: most + "x") else {
      throw Missing()
    }
    let name = "client-" + String(repeating: "é", count: 193)
    guard case .relay = trigger("private-a", name: name) else { throw Missing() }
    guard case .send(.error(nil, _)) = trigger("private-a", name: name + "x") else {
      throw Missing()
    }
  }
}
