import Foundation
@_spi(Testing) import MessagingServer

/// STOMP: frames of any bytes in pieces, written again in every version, and the session of a
/// connection.
///
/// The first byte of the input selects one of these.
final class STOMPFixture {
  static let versions = ["1.0", "1.1", "1.2"]

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let rest = Array(input.dropFirst())
    guard mode & 3 == 0 else {
      do {
        var run = try STOMPRun(Pieces(rest))
        for step in rest.split(separator: 0x1E) {
          run.take(step[step.startIndex], Array(step.dropFirst()))
        }
        return run.finish()
      } catch {
        return require(false, "a session cannot begin: \(error)")
      }
    }
    let choice = Int(mode >> 2 & 3)
    decode(rest, choice < 3 ? Self.versions[choice] : nil)
  }

  // MARK: - Frames

  /// The pieces do not matter, the bounds hold, and frames are the same when they are written again.
  private func decode(_ bytes: [UInt8], _ version: String?) {
    let whole = STOMPProbe.decode([bytes[...]], version)
    var pieces = Pieces(bytes)
    for cut in [pieces.cut(bytes, largestBitCount: 6), bytes.indices.map { bytes[$0...$0] }] {
      let parts = STOMPProbe.decode(cut, version)
      require(parts.frames == whole.frames, "frames depend on how they are cut")
      require(parts.isBroken == whole.isBroken, "a fault depends on how frames are cut")
      require(
        whole.isBroken || parts.isInFrame == whole.isInFrame, "the end depends on how it is cut")
    }
    for frame in whole.frames {
      require(frame.command.utf8.count <= STOMPProbe.commandByteCount, "a command is too long")
      require(frame.headers.count <= STOMPProbe.headerCount, "\(frame.headers.count) headers")
      let byteCount = frame.headers.joined().reduce(0) { $0 + $1.utf8.count }
      require(byteCount <= STOMPProbe.headerByteCount, "\(byteCount) bytes of headers")
      require(frame.body.count <= STOMPProbe.bodyByteCount, "a body of \(frame.body.count) bytes")
      // A command with these is none of the protocol's.
      guard !frame.command.unicodeScalars.contains("\r") else { continue }
      for version in Self.versions { written(frame, version) }
    }
  }

  /// What a version can express comes back in it, and all else is left out.
  private func written(_ frame: STOMPProbe.Frame, _ version: String) {
    let isPlain = ["CONNECT", "STOMP", "CONNECTED"].contains(frame.command) || version == "1.0"
    let expected = frame.headers.filter { header in
      !isPlain
        || !header.joined().utf8.contains { "\r\n".utf8.contains($0) }
          && !header[0].utf8.contains(UInt8(ascii: ":"))
    }.map { header in
      // This version's clients put a space before a value.
      version == "1.0"
        ? [header[0], String(header[1].unicodeScalars.drop { $0 == " " })] : header
    }
    let found = STOMPProbe.decode([frame.encoded(version)[...]], version, isOurs: true)
    require(!found.isBroken && !found.isInFrame, "a written frame is broken")
    require(found.frames.count == 1, "a written frame is \(found.frames.count)")
    require(found.frames[0].command == frame.command, "another command")
    require(found.frames[0].headers == expected, "other headers in version \(version)")
    require(found.frames[0].body == frame.body, "another body")
  }
}

/// A session with a hostile client, and what must hold of all that it does.
///
/// A step begins with `>` and has bytes of the client, or with a letter for what happens beside it.
private struct STOMPRun {
  /// What is known of a subscription to a queue without the session.
  private struct Queue {
    let prefetchCount: Int
    /// How many messages it can take.
    var credit: Int
  }

  /// Where a lease is.
  private enum Lease: Equatable {
    /// With the client, by the number of its subscription.
    case held(Int)
    case settled(STOMPProbe.Settlement)
    case returned
  }

  private var session: STOMPProbe.Session
  private var pieces: Pieces
  private var now: UInt64 = 1_000_000_000
  private var queues: [Int: Queue] = [:]
  private var topics: Set<Int> = []
  private var leases: [String: Lease] = [:]
  private var lastLease: Int64 = 0
  /// Leased messages that have not left, and operations that are not done.
  private var leaving: [(number: UInt64, subscription: Int)] = []
  private var working: [STOMPProbe.Session.Work] = []
  /// The last frame that could be a message.
  private var message: STOMPProbe.Frame?
  private var isOver = false

  init(_ pieces: Pieces) throws {
    session = try STOMPProbe.Session(atNanoseconds: now)
    self.pieces = pieces
  }

  mutating func take(_ kind: UInt8, _ rest: [UInt8]) {
    let digit = Int((rest.first ?? 0x31) & 7)
    switch kind {
    case UInt8(ascii: ">"): receive(rest)
    case UInt8(ascii: "c") where session.isAuthenticating: authenticate(digit > 0)
    case UInt8(ascii: "d"): deliver(to: digit, count: Int((rest.dropFirst().first ?? 1) & 7))
    case UInt8(ascii: "m"):
      if let message = message ?? Self.anyMessage {
        perform(session.deliver(message, to: String(decoding: rest, as: UTF8.self)))
      }
    case UInt8(ascii: "s") where !leaving.isEmpty:
      let (number, subscription) = leaving.removeFirst()
      perform(session.didSend(number, of: subscription), isSent: true)
    case UInt8(ascii: "w") where !working.isEmpty:
      perform(session.didPerform(working.removeFirst()))
    case UInt8(ascii: "x") where !session.hasEnded: perform(session.refused())
    case UInt8(ascii: "r"): perform(session.recheck(isAllowed: digit > 0))
    case UInt8(ascii: "t"): pass(UInt64(digit) * 9_000_000_000)
    default: break
    }
    check()
  }

  /// The connection is lost: what the client holds goes back, all of it and nothing else.
  mutating func finish() {
    for token in session.tokens { giveBack(token) }
    require(
      leases.values.allSatisfy { if case .held = $0 { false } else { true } },
      "a lease is forgotten")
  }

  private static let anyMessage = STOMPProbe.decode(
    [Array("SEND\na:b\n\nx\0".utf8)[...]], "1.2"
  ).frames.first

  // MARK: - Steps

  /// The bytes have the same effect however they are cut.
  private mutating func receive(_ bytes: [UInt8]) {
    for version in STOMPFixture.versions {
      for frame in STOMPProbe.decode([bytes[...]], version).frames where frame.command == "SEND" {
        message = frame
      }
    }
    var other = session
    let hadEnded = session.hasEnded
    let actions = session.receive(bytes, atNanoseconds: now)
    let parts = pieces.cut(bytes, largestBitCount: 6).flatMap {
      other.receive(Array($0), atNanoseconds: now)
    }
    require(actions == parts, "what happens depends on how bytes are cut")
    require(!hadEnded || actions.isEmpty, "something happens behind the end")
    perform(actions)
  }

  private mutating func authenticate(_ isAllowed: Bool) {
    perform(session.authenticated(isAllowed, atNanoseconds: now))
  }

  private mutating func deliver(to subscription: Int, count: Int) {
    guard let message = message ?? Self.anyMessage, !topics.contains(subscription) else { return }
    // A subscription that has ended can have messages on their way.
    let taken = min(count, queues[subscription]?.credit ?? 2)
    guard taken > 0 else { return }
    let numbers = lastLease + 1..<lastLease + 1 + Int64(taken)
    lastLease += Int64(taken)
    for number in numbers { leases[STOMPProbe.Session.token(number)] = .held(subscription) }
    queues[subscription]?.credit -= taken
    perform(session.deliver(message, numbers: numbers, to: subscription))
  }

  /// The timer looks at the clock at each deadline, and rests.
  private mutating func pass(_ time: UInt64) {
    let end = now + time
    var count = 0
    while let deadline = session.nextDeadlineNanoseconds, deadline <= end {
      now = max(now, deadline)
      perform(session.timePassed(atNanoseconds: now))
      count += 1
      require(count < 1000, "the timer never rests")
      require(
        session.nextDeadlineNanoseconds.map { $0 > now } ?? true, "a deadline is not kept")
    }
    now = end
  }

  // MARK: - What must hold

  private func check() {
    let tokens = session.tokens
    let held = leases.filter { if case .held = $0.value { true } else { false } }
    require(Set(tokens).count == tokens.count, "a lease is held twice")
    require(Set(tokens) == Set(held.keys), "a lease is forgotten, or held and settled")
    require(queues.count <= STOMPProbe.Session.subscriptionCount, "\(queues.count) queues")
    // The end of the session ends its queues.
    guard !session.hasEnded else { return }
    let works = working.flatMap(\.subscriptions)
    for (number, queue) in queues {
      let count = held.values.count { $0 == .held(number) } + works.count { $0 == number }
      require(count + queue.credit == queue.prefetchCount, "a queue has another credit")
    }
  }

  private mutating func perform(
    _ actions: [STOMPProbe.Session.Action], isSent: Bool = false
  ) {
    for action in actions {
      switch action {
      case .send(let frame, let bytes): sent(frame, bytes)
      case .sendLeased(let frame, let bytes, let number, let subscription):
        sent(frame, bytes)
        leaving.append((number, subscription))
      case .authenticate: require(session.isAuthenticating, "a client is looked for twice")
      case .subscribe(let number, let isQueue, let prefetchCount):
        require(
          (1...STOMPProbe.Session.maximumPrefetchCount).contains(prefetchCount),
          "a prefetch of \(prefetchCount)")
        if isQueue {
          queues[number] = Queue(prefetchCount: prefetchCount, credit: prefetchCount)
        } else {
          topics.insert(number)
        }
      case .unsubscribe(let number, let tokens):
        queues[number] = nil
        for token in tokens { giveBack(token) }
      case .perform(let publications, let byteCount, let settled, let work):
        require(!isOver || isSent, "an operation behind the end")
        self.perform(publications, byteCount, settled)
        working.append(work)
      case .giveBack(let tokens): for token in tokens { giveBack(token) }
      case .credit(let count, let subscription): queues[subscription]?.credit += count
      case .receipt: require(!isOver, "a receipt behind the end")
      case .close, .fail, .end:
        require(!isOver, "a second end")
        isOver = true
      }
    }
    require(isOver == session.hasEnded, "the session has not ended as it said")
  }

  private mutating func perform(
    _ publications: Int, _ byteCount: Int, _ settled: [(STOMPProbe.Settlement, [String])]
  ) {
    let count = publications + settled.count
    require(count <= STOMPProbe.Session.transactionFrameCount, "\(count) operations")
    let most = max(
      STOMPProbe.Session.transactionByteCount,
      STOMPProbe.bodyByteCount + 2 * STOMPProbe.headerByteCount)
    require(byteCount <= most, "operations of \(byteCount) bytes")
    for (kind, tokens) in settled {
      require(!tokens.isEmpty, "nothing is settled")
      for token in tokens {
        guard case .held = leases[token] else {
          return require(false, "a lease is settled that is \(String(describing: leases[token]))")
        }
        leases[token] = .settled(kind)
      }
    }
  }

  private mutating func giveBack(_ token: String) {
    guard case .held = leases[token] else {
      return require(false, "a lease goes back that is \(String(describing: leases[token]))")
    }
    leases[token] = .returned
  }

  /// A client reads one frame in what it is sent, and no header that the version cannot express.
  private func sent(_ frame: STOMPProbe.Frame, _ bytes: [UInt8]) {
    let found = STOMPProbe.decode([bytes[...]], session.version, isOurs: true)
    require(
      found.frames.count == 1 && !found.isBroken && !found.isInFrame, "a broken frame is sent")
    require(found.frames[0].command == frame.command, "another command is sent")
    require(found.frames[0].body == frame.body, "another body is sent")
  }
}
