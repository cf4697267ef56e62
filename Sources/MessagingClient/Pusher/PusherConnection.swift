internal import StrictJSON

/// The connection of a client of Pusher's protocol: makes it, keeps it alive, and makes it again.
actor PusherConnection {
  private struct Entry {
    let subscription: PusherSubscription
    var userID: String?
    /// Who waits for the server's confirmation.
    var waiter: CheckedContinuation<MessagingClientError?, Never>?
    /// The connection on which the server has confirmed it.
    var confirmedID: String?
  }

  /// How a connection ended.
  private enum Ending {
    /// Connect again after at least so long; nil is now, after a first failure.
    case again(after: Duration?, MessagingClientError)
    /// Do not connect again.
    case final(MessagingClientError)
  }

  private static let messageByteCount = 1 << 20

  private let configuration: PusherConfiguration
  private let transport: Transport
  private var log: ClientLog { transport.log }
  private var entries: [String: Entry] = [:]
  private var run: Task<Void, Never>?
  private var socket: (WebSocket, id: String)?
  private var lastHeard = ContinuousClock.now
  private var isClosed = false

  init(_ configuration: PusherConfiguration, _ transport: Transport) {
    self.configuration = configuration
    self.transport = transport
  }

  var socketID: String? { socket?.id }

  // MARK: - Subscriptions

  func add(_ subscription: PusherSubscription) async throws(MessagingClientError) {
    let channel = subscription.channel
    guard !isClosed else { throw MessagingClientError(.cancelled, "the client is closed") }
    guard entries[channel] == nil else {
      throw MessagingClientError(
        .invalidArgument, "the client is subscribed to '\(channel)' already",
        hint: "share the events of its one subscription")
    }
    entries[channel] = Entry(subscription: subscription)
    if run == nil { run = Task { await work() } }
    let error = await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        entries[channel]?.waiter = waiter
        if let socket { Task { await request(subscription, on: socket.id) } }
        if Task.isCancelled { cancel(subscription) }
      }
    } onCancel: {
      Task { await cancel(subscription) }
    }
    if let error { throw error }
  }

  private func cancel(_ subscription: PusherSubscription) {
    if isCurrent(subscription) { end(subscription.channel, Self.cancelled) }
  }

  /// Whether a subscription has not ended; another one of its channel can have followed it.
  private func isCurrent(_ subscription: PusherSubscription) -> Bool {
    entries[subscription.channel]?.subscription === subscription
  }

  private static let cancelled = MessagingClientError(.cancelled, "the subscription was cancelled")

  func remove(_ subscription: PusherSubscription) async {
    guard isCurrent(subscription) else { return }
    log.unsubscribed(from: subscription.channel)
    end(subscription.channel, nil)
    await unsubscribe(subscription.channel)
  }

  private func unsubscribe(_ channel: String) async {
    try? await send(["event": "pusher:unsubscribe", "data": ["channel": .string(channel)]])
  }

  /// Ends a subscription that cannot keep what came.
  private func end(_ channel: String, overflowingWith error: MessagingClientError?) {
    guard let error else { return }
    end(channel, error)
    Task { await unsubscribe(channel) }
  }

  func close() {
    isClosed = true
    run?.cancel()
    if let socket {
      socket.0.close()
      log.disconnected()
    }
    socket = nil
    for channel in Array(entries.keys) { end(channel, nil) }
  }

  /// Ends a subscription; an error goes to who waits for it, else to who takes its events.
  private func end(_ channel: String, _ error: MessagingClientError?) {
    guard let entry = entries.removeValue(forKey: channel) else { return }
    if let error, entry.waiter == nil { log.givesUp(error, channel: channel) }
    entry.subscription.end(error)
    entry.waiter?.resume(returning: error ?? Self.cancelled)
  }

  /// Asks for a subscription on the connection; an answer of the authorizer that comes too late is dropped.
  private func request(_ subscription: PusherSubscription, on id: String) async {
    let channel = subscription.channel
    do {
      let authorization = try await authorization(for: channel, id)
      guard socket?.id == id, isCurrent(subscription) else { return }
      try subscription.authorized(authorization)
      entries[channel]?.userID = authorization?.channelData
        .flatMap { try? JSONReader.value(Array($0.utf8)) }
        .flatMap { $0.member("user_id") }.map { $0.string ?? $0.text }
      var data = [JSONMember("channel", .string(channel))]
      if let auth = authorization?.auth {
        // A signature, KEY:CODE, is good for this connection alone; a token is good for everyone who reads it.
        if !auth.utf8.contains(UInt8(ascii: ":")) { try transport.checkProtection() }
        data.append(JSONMember("auth", .string(auth)))
      }
      if let channelData = authorization?.channelData {
        data.append(JSONMember("channel_data", .string(channelData)))
      }
      try await send(["event": "pusher:subscribe", "data": .object(data)])
      Task {
        if (try? await Task.sleep(for: configuration.pongTime)) != nil { confirm(subscription, id) }
      }
    } catch let error as MessagingClientError where error.code == .unavailable {
      // The connection is lost: it is asked again on the next one.
    } catch {
      guard socket?.id == id, isCurrent(subscription) else { return }
      end(channel, Self.refusal(of: channel, error))
    }
  }

  /// Ends a first subscription that the server does not confirm in time; a later one is asked for again.
  private func confirm(_ subscription: PusherSubscription, _ id: String) {
    let channel = subscription.channel
    guard let socket, socket.id == id, isCurrent(subscription), let entry = entries[channel],
      entry.confirmedID != id
    else { return }
    guard entry.waiter != nil else { return socket.0.drop() }
    end(
      channel,
      MessagingClientError(
        .unavailable, "the server did not confirm the subscription to '\(channel)' in time"))
  }

  private static func refusal(of channel: String, _ error: any Error) -> MessagingClientError {
    let status =
      (error as? ChannelAuthorizationError)?.status ?? (error as? MessagingClientError)?.status
    return MessagingClientError(
      .forbidden, "the subscription to '\(channel)' is not authorized: \(error)", status: status)
  }

  private func authorization(
    for channel: String, _ id: String
  ) async throws -> ChannelAuthorization? {
    guard PusherChannelKind(channel) != .public else { return nil }
    let authorization = try await configuration.authorizer?
      .authorize(ChannelAuthorizationRequest(channel: channel, socketID: id))
    log.fetchedAuthorization(for: channel)
    return authorization
  }

  /// Asks the authorizer again, for a channel's new key.
  func authorize(_ channel: String) async throws -> ChannelAuthorization? {
    guard let id = socket?.id else { throw Self.lost }
    return try await authorization(for: channel, id)
  }

  private static let lost = MessagingClientError(.unavailable, "the connection is lost")

  func send(_ frame: JSONValue) async throws(MessagingClientError) {
    guard let socket else { throw Self.lost }
    let name = frame.member("event")?.string ?? ""
    do {
      try await send(
        SecretText(frame.text), name.utf8.starts(with: "client-".utf8) ? "client-event" : name,
        on: socket.0)
    } catch {
      throw Self.lost
    }
  }

  private func send(_ text: SecretText, _ kind: String, on webSocket: WebSocket) async throws {
    log.sends(frame: kind, byteCount: text.byteCount)
    try await webSocket.send(text)
  }

  // MARK: - Connections

  private func work() async {
    var failureCount = 0
    while !isClosed {
      let start = ContinuousClock.now
      let (ending, wasEstablished) = await connect()
      socket = nil
      // A server that ends each connection soon gets longer waits, also if it establishes them.
      if wasEstablished, ContinuousClock.now - start >= configuration.backoff.maximum {
        failureCount = 0
      }
      if isClosed { break }
      switch ending {
      case .final(let error):
        log.givesUp(error)
        for channel in Array(entries.keys) { end(channel, error) }
        run = nil
        return
      case .again(let shortest, let error):
        for (channel, entry) in entries {
          // Who waits for a first subscription is told; others get their events again later.
          if entry.waiter != nil {
            end(channel, error)
          } else {
            end(channel, overflowingWith: entry.subscription.put(.status(.disconnected)))
          }
        }
        failureCount += 1
        if entries.isEmpty {
          run = nil
          return log.disconnected(error)
        }
        log.fails(error, failureCount: failureCount)
        if shortest == nil, failureCount == 1 { continue }
        var generator = SystemRandomNumberGenerator()
        let wait = max(
          configuration.backoff.wait(afterFailures: failureCount, &generator), shortest ?? .zero)
        log.waits(wait, failureCount: failureCount)
        try? await Task.sleep(for: wait)
      }
    }
    run = nil
  }

  /// Makes a connection, and serves it until it ends.
  private func connect() async -> (Ending, wasEstablished: Bool) {
    var target = RequestTarget(["app", configuration.key])
    target.add("protocol", "7")
    target.add("client", "datavault-swift")
    target.add("version", "1.0")
    let webSocket: WebSocket
    do throws(MessagingClientError) {
      webSocket = try await transport.openWebSocket(
        target, messageByteCount: Self.messageByteCount, timeout: configuration.answerTime)
    } catch {
      let isFinal = ![.cannotConnect, .outcomeUnknown, .unavailable, .busy].contains(error.code)
      return (isFinal ? .final(error) : .again(after: .zero, error), false)
    }
    defer { webSocket.drop() }
    lastHeard = .now
    var watcher = Task { [pongTime = configuration.pongTime] in
      // Whatever else the server says, it must establish the connection.
      if (try? await Task.sleep(for: pongTime)) != nil { webSocket.drop() }
    }
    defer { watcher.cancel() }
    var wasEstablished = false
    var failure: (code: Int64, message: String)?
    var count = 0
    while !Task.isCancelled, let event = await webSocket.next() {
      count += 1
      // Events that wait come without a suspension: a flood would keep `close()` and all others from the actor.
      if count.isMultiple(of: 32) { await Task.yield() }
      guard case .message(let bytes) = event else {
        guard case .closed(let code, let reason) = event else { break }
        if code != 1006 { log.serverEnds(code: Int(clamping: failure?.code ?? Int64(code))) }
        return (Self.ending(Int64(code), failure?.message ?? reason, failure?.code), wasEstablished)
      }
      lastHeard = .now
      // An error that something follows has not ended the connection.
      failure = nil
      let frame = PusherFrame(bytes)
      log.receives(frame: frame?.kind ?? "unknown", byteCount: bytes.count)
      switch frame {
      // A second one would ask the authorizer again.
      case .established where wasEstablished: break
      case .established(let id, let seconds):
        wasEstablished = true
        log.connected()
        socket = (webSocket, id)
        watcher.cancel()
        watcher = Task {
          await watch(webSocket, activityTime: .seconds(min(max(seconds, 1), 3600)))
        }
        for entry in entries.values { Task { await request(entry.subscription, on: id) } }
      case .error(let code?, let message): failure = (code, message)
      case .error(nil, let message): refuseOnlyPending(message)
      case .ping:
        try? await send(#"{"event":"pusher:pong","data":{}}"#, "pusher:pong", on: webSocket)
      case let frame?: take(frame)
      case nil: break
      }
    }
    return (.again(after: .zero, Self.lost), wasEstablished)
  }

  /// Pings a server that has said nothing for a time, and drops the connection if it does not answer.
  private func watch(_ webSocket: WebSocket, activityTime: Duration) async {
    while (try? await Task.sleep(for: activityTime / 2)) != nil {
      let silence = ContinuousClock.now - lastHeard
      if silence > activityTime + configuration.pongTime { return webSocket.drop() }
      if silence > activityTime / 2 {
        try? await send(#"{"event":"pusher:ping","data":{}}"#, "pusher:ping", on: webSocket)
      }
    }
  }

  private func take(_ frame: PusherFrame) {
    switch frame {
    case .subscribed(let channel, let members):
      guard let entry = entries[channel] else { return }
      log.subscribed(to: channel)
      let overflow = entry.subscription.subscribed(members, userID: entry.userID)
      entries[channel]?.waiter = nil
      entries[channel]?.confirmedID = socket?.id
      entry.waiter?.resume(returning: nil)
      end(channel, overflowingWith: overflow)
    case .subscriptionError(let channel, let status, let message):
      end(
        channel,
        MessagingClientError(
          .forbidden,
          "the server refuses the subscription to '\(channel)': \(EscapedText(message).text)",
          status: status.map { Int(clamping: $0) }))
    case .cacheMiss(let channel):
      end(channel, overflowingWith: entries[channel]?.subscription.put(.cacheMiss))
    case .memberAdded(let channel, let userID, let info):
      let member = PusherMember(userID: userID, info: info)
      end(channel, overflowingWith: entries[channel]?.subscription.memberAdded(member))
    case .memberRemoved(let channel, let userID):
      end(channel, overflowingWith: entries[channel]?.subscription.memberRemoved(userID))
    case .event(let channel, let name, let userID, let data):
      let item = PusherSubscription.Item.event(name: name, userID: userID, data: data)
      end(channel, overflowingWith: entries[channel]?.subscription.put(item))
    default: break
    }
  }

  /// Pusher answers a wrong signature with an error that names no channel: it is known if only one waits.
  private func refuseOnlyPending(_ message: String) {
    let pending = entries.filter { $0.value.confirmedID != socket?.id }
    guard pending.count == 1, let channel = pending.first?.key else { return }
    take(.subscriptionError(channel: channel, status: nil, message: message))
  }

  /// What the code of an error or of a close frame asks for.
  private static func ending(_ closeCode: Int64, _ message: String, _ code: Int64?) -> Ending {
    let code = (4000..<5000).contains(closeCode) ? closeCode : code ?? closeCode
    let text = "the server ended the connection (\(code)): \(EscapedText(message).text)"
    return switch code {
    case 4000..<4100: .final(MessagingClientError(.refused, text))
    case 4100..<4200: .again(after: .seconds(1), MessagingClientError(.busy, text))
    case 4200..<4300: .again(after: nil, MessagingClientError(.unavailable, text))
    default: .again(after: .zero, MessagingClientError(.busy, text))
    }
  }
}
