import Foundation
@_spi(Testing) import MessagingServer

/// Requests to PubNub's API: of any bytes, changed, made from names, and with a body.
///
/// The first byte of the input selects one of these. Foundation's decoding is the judge.
final class TargetFixture {
  private static let refusals: Set<String> = [
    "Invalid Arguments", "Invalid JSON", "Invalid Channel", "Invalid Channel Group",
    "Channel or channel group is missing", "Too many channels", "No state specified.",
    "Reserved character in input parameters.", "Could Not Parse Request",
    "Request Entity Too Large",
  ]

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let rest = UnsafeBufferPointer(rebasing: input.dropFirst())
    let choice = mode >> 2 & 3
    let method = ["GET", "POST", "DELETE", "PUT"][Int(choice)]
    switch mode & 3 {
    case 0:
      let parts = rest.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
      check(method, Array(parts[0]), body: Array(parts.dropFirst().joined()))
    case 1:
      guard let edits = Edits(rest) else { return }
      var target = Self.targets[Int(edits.mode) % Self.targets.count]
      edits.apply(to: &target)
      check(method, target)
    case 2: made(rest, RequestText.Style(rawValue: choice) ?? .short)
    default: body(Array(rest), choice)
    }
  }

  private func read(
    _ method: String, _ target: [UInt8], body: [UInt8] = []
  ) -> Result<PubNubProbe.Reading?, PubNubProbe.Refusal> {
    Result { () throws(PubNubProbe.Refusal) in
      try PubNubProbe.read(method: method, target: target, body: body)
    }
  }

  // MARK: - Any request

  private func check(_ method: String, _ target: [UInt8], body: [UInt8] = []) {
    let outcome = read(method, target, body: body)
    let text = RequestText(target)
    for (other, change) in [
      (target, "again"), (text.encodedAgain, "in another encoding"),
      (text.withMoreParameters, "with more parameters"),
    ] {
      require(
        read(method, other, body: body) == outcome, "\(change), a request asks for something else")
    }
    switch outcome {
    case .failure(let refusal):
      require([400, 413].contains(refusal.status), "a refusal with \(refusal.status)")
      require(Self.refusals.contains(refusal.message), "an unknown refusal: \(refusal.message)")
    case .success(nil): break
    case .success(let reading?):
      bounds(reading)
      judge(text, reading)
    }
  }

  private func bounds(_ reading: PubNubProbe.Reading) {
    for names in [reading.channels, reading.groups] {
      require(names.count <= PubNubProbe.maximumNameCount, "\(names.count) names")
    }
    require(reading.channels.allSatisfy { isName($0.utf8) && !$0.contains("/") }, "a wrong channel")
    require(reading.groups.allSatisfy { isName($0.utf8) }, "a wrong group")
    require((reading.userID?.utf8.count ?? 0) <= 255, "a user id is too long")
    require(reading.payload.count <= PubNubProbe.maximumBodyByteCount, "a message is too long")
  }

  private func isName(_ name: some Collection<UInt8>) -> Bool {
    (1...200).contains(name.count) && name.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
  }

  /// The names in a path and the user are those that Foundation decodes.
  private func judge(_ text: RequestText, _ reading: PubNubProbe.Reading) {
    let parts = text.parts
    let places: (key: Int, channels: Int?)
    switch (text.word(0), text.word(1)) {
    case ("publish", _), ("signal", _): places = (2, 4)
    case ("v2", "subscribe"): places = (2, 3)
    case (_, "presence"): places = (3, text.word(4) == "channel" ? 5 : nil)
    case (_, "history"), (_, "history-with-actions"): places = (3, 5)
    case (_, "channel-registration"): places = (3, nil)
    default: return
    }
    if let key = RequestText.decoded(parts[places.key]) {
      require(isSame(key, reading.subscribeKey), "another subscribe key")
    }
    if let value = text.value("uuid") {
      let user = RequestText.decoded(value)
      require(user.map { isSame($0, reading.userID) } ?? true, "another user")
    } else {
      require(reading.userID == nil, "a user that is not named")
    }
    guard let index = places.channels else { return }
    let isOne = text.word(0) == "publish" || text.word(0) == "signal"
    let pieces = isOne ? [parts[index]] : parts[index].split(separator: UInt8(ascii: ","))
    var names: [[UInt8]] = []
    for piece in pieces {
      guard let name = RequestText.decoded(piece).map({ Array($0.utf8) }) else { return }
      if !names.contains(name) { names.append(name) }
    }
    // An encoded comma alone is an empty list.
    if !isOne, pieces.count == 1, names == [Array(",".utf8)] { names = [] }
    require(names == reading.channels.map { Array($0.utf8) }, "other channels")
  }

  private func isSame(_ a: String, _ b: String?) -> Bool { b?.utf8.elementsEqual(a.utf8) == true }

  // MARK: - A request from names

  /// A call with names comes back with these names, however they are encoded.
  private func made(_ input: UnsafeBufferPointer<UInt8>, _ style: RequestText.Style) {
    guard let choice = input.first else { return }
    let fields = input.dropFirst().split(separator: 0).map { Array($0) }
    let form = Int(choice) % Self.forms.count
    let isPublication = form == 0
    let list = fields.map { style.encode($0) }.joined(separator: Array(",".utf8))
    let user = fields.first ?? []
    var target: [UInt8] = []
    for part in Self.forms[form].split(separator: " ") {
      switch part {
      case "LIST": target += list
      case "ONE": target += style.encode(user)
      case "JSON": target += style.encode(fields.last ?? [])
      default: target += part.utf8
      }
    }
    target += Array("&uuid=".utf8) + style.encode(user) + Array("&channel-group=".utf8)
    target += style.encode(Array(fields.suffix(3).joined(separator: Array(",".utf8))))

    var channels = distinct(isPublication ? [user] : fields)
    if !isPublication, fields == [Array(",".utf8)] { channels = [] }
    let readsGroups = (1...5).contains(form)
    let pieces =
      readsGroups ? fields.suffix(3).flatMap { $0.split(separator: UInt8(ascii: ",")) } : []
    let groups = distinct(pieces.map { Array($0) })
    let isValid =
      channels.allSatisfy { isText($0) && isName($0) && !$0.contains(UInt8(ascii: "/")) }
      && groups.allSatisfy {
        isText($0) && isName($0) && !$0.elementsEqual(":".utf8)
          && !$0.elementsEqual(":-pnpres".utf8)
      }
      && max(channels.count, pieces.count) <= PubNubProbe.maximumNameCount
      && isText(user) && user.count <= 255
      && !(channels.isEmpty && (form > 5 || form == 1 && groups.isEmpty))
    guard case .success(let reading?) = read("GET", target) else {
      return require(!isValid, "a valid request is refused")
    }
    require(isValid, "an invalid request is accepted")
    require(reading.subscribeKey == "sub", "another subscribe key")
    require(reading.channels.map { Array($0.utf8) } == channels, "other channels")
    require(reading.groups.map { Array($0.utf8) } == groups, "other groups")
    require(reading.userID.map { Array($0.utf8) } == user, "another user")
    require(reading.payload == (isPublication ? fields.last ?? [] : []), "another message")
  }

  private func distinct(_ names: [[UInt8]]) -> [[UInt8]] {
    var found: [[UInt8]] = []
    for name in names where !found.contains(name) { found.append(name) }
    return found
  }

  private func isText(_ bytes: [UInt8]) -> Bool { String(validating: bytes, as: UTF8.self) != nil }

  /// Requests with a place for names; the first publishes, and 1 to 5 read groups.
  private static let forms = [
    "/publish/pub/sub/0/ ONE /0/ JSON ?store=1",
    "/v2/subscribe/sub/ LIST /0?tt=0",
    "/v2/presence/sub-key/sub/channel/ LIST /heartbeat?heartbeat=300",
    "/v2/presence/sub_key/sub/channel/ LIST /leave?",
    "/v2/presence/sub-key/sub/channel/ LIST ?state=1",
    "/v2/presence/sub-key/sub/channel/ LIST /uuid/u?",
    "/v3/history/sub-key/sub/channel/ LIST ?max=100",
    "/v3/history/sub-key/sub/message-counts/ LIST ?timetoken=15000000000000000",
  ]

  // MARK: - Bodies

  /// A body is the same message as it is and compressed, and none that was changed is accepted.
  private func body(_ input: [UInt8], _ choice: UInt8) {
    guard let first = input.first else { return }
    let unit = Array(input.dropFirst())
    let body = Array(repeatElement(unit, count: 1 + Int(first & 31)).joined())
    let isSmall = body.count <= PubNubProbe.maximumBodyByteCount
    var packed = choice & 1 == 0 ? PackedBody.gzip(body) : PackedBody.zlib(body)
    let expected = isSmall ? body : nil
    require(message(packed) == expected, "a compressed message comes back changed")
    let isPlain =
      !body.starts(with: [0x1F, 0x8B])
      && !(body.count > 1 && body[0] == 0x78 && (0x7800 + Int(body[1])) % 31 == 0)
    let plain = message(body)
    require(isPlain ? plain == expected : plain != body, "a message comes back changed")
    // Behind the fields of the head, which has no sum.
    let place = 10 + Int(first) * 7 % (packed.count - 10)
    packed[place] ^= 1 << (first >> 5)
    let changed = message(packed)
    require(changed == nil || changed == expected, "a changed body is accepted")
    require(message(Array(packed[..<place])) == nil, "a part of a body is accepted")
  }

  private func message(_ body: [UInt8]) -> [UInt8]? {
    let target = Array("/publish/pub/sub/0/c/0".utf8)
    guard case .success(let reading?) = read("POST", target, body: body) else { return nil }
    return reading.payload
  }

  // MARK: - Templates

  /// A request for each endpoint of docs/reference/pubnub-api.md.
  private static let targets = [
    "/time/0?uuid=u",
    "/publish/pub/sub/0/room%2C1/0/%7B%22a%22%3A1%7D?store=0&norep=true&ttl=24&meta=%7B%7D&uuid=u",
    "/signal/pub/sub/0/c/0/%22x%22?custom_message_type=text&uuid=u",
    "/v2/subscribe/sub/a,b%2Cc,a.*,c-pnpres/0?channel-group=g,h&tt=0&heartbeat=300&state=%7B%7D"
      + "&filter-expr=a%3D%3D1&uuid=u",
    "/v2/presence/sub-key/sub/channel/a,b/heartbeat?channel-group=g&heartbeat=20&uuid=u",
    "/v2/presence/sub_key/sub/channel/a,b/leave?uuid=u",
    "/v2/presence/sub-key/sub/channel/a,b?disable-uuids=0&state=1&limit=10&offset=5&uuid=u",
    "/v2/presence/sub-key/sub?uuid=u",
    "/v2/presence/sub-key/sub/uuid/u%20v",
    "/v2/presence/sub-key/sub/channel/a/uuid/u",
    "/v2/presence/sub-key/sub/channel/a/uuid/u/data?state=%7B%22x%22%3A1%7D",
    "/v2/history/sub-key/sub/channel/a?count=100&start=15000000000000000&reverse=true",
    "/v3/history/sub-key/sub/channel/a,b?max=25&include_meta=true&include_uuid=true&end=1",
    "/v3/history-with-actions/sub-key/sub/channel/a?max=25",
    "/v3/history/sub-key/sub/message-counts/a,b?channelsTimetoken=15000000000000000,1&timetoken=0",
    "/v1/channel-registration/sub-key/sub/channel-group",
    "/v1/channel-registration/sub-key/sub/channel-group/g?add=a,b&uuid=u",
    "/v1/channel-registration/sub-key/sub/channel-group/g?remove=a,b&uuid=u",
    "/v1/channel-registration/sub-key/sub/channel-group/g/remove",
    "/v2/auth/grant/sub-key/sub?channel=a&auth=k&r=1&timestamp=1&signature=v2.x",
    "/v1/auth/audit/sub-key/sub?timestamp=1",
    "/v3/pam/sub/grant?timestamp=1&signature=v2.x",
    "/v3/pam/sub/grant/token%20text?timestamp=1",
    "/v2/objects/sub/uuids/u?include=custom",
    "/v1/files/sub/channels/a/files",
    "/v2/push/sub-key/sub/devices/d?type=gcm",
    "/v1/message-actions/sub/channel/a",
  ].map { Array($0.utf8) }
}
