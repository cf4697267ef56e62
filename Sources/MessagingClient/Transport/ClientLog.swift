internal import Logging
internal import NIOHTTP1

/// What a client writes to its log: each event with its level and its words.
///
/// No event takes a text in which a credential or a payload can be. Names that a server or a user chooses are escaped,
/// and of an error only its code and its status are written.
struct ClientLog: Sendable {
  /// Writes nothing.
  static let silent = ClientLog(.silent, client: "", server: "")

  private let logger: Logger

  /// - Parameters:
  ///   - client: which protocol it speaks, such as `pubnub`; it is in each line.
  ///   - server: where it connects to; it is in each line.
  init(_ logger: Logger, client: String, server: String) {
    var logger = logger
    logger[metadataKey: "client"] = "\(client)"
    logger[metadataKey: "server"] = "\(server)"
    self.logger = logger
  }

  // MARK: - Trace

  func sends(_ request: ClientRequest) {
    logger.trace(
      "sent a request",
      metadata: ["request": "\(Self.kind(of: request))", "bytes": "\(request.body.count)"])
  }

  func receives(_ response: ClientResponse) {
    logger.trace(
      "received an answer",
      metadata: ["status": "\(response.status)", "bytes": "\(response.body.count)"])
  }

  /// - Parameter kind: a word of the protocol.
  func sends(frame kind: String, byteCount: Int) {
    logger.trace("sent a frame", metadata: ["frame": "\(kind)", "bytes": "\(byteCount)"])
  }

  /// - Parameter kind: a word of the protocol.
  func receives(frame kind: String, byteCount: Int) {
    logger.trace("received a frame", metadata: ["frame": "\(kind)", "bytes": "\(byteCount)"])
  }

  /// The words that can be written of a path; all others can be names, keys or payloads.
  private static let services: Set<Substring> = [
    "publish", "signal", "subscribe", "presence", "history", "history-with-actions",
    "message-counts", "channel-registration", "auth", "pam", "time", "events", "app", "stomp",
  ]

  private static func kind(of request: ClientRequest) -> String {
    let service = request.target.path.split(separator: "/").first(where: services.contains)
    return request.method.rawValue + (service.map { " \($0)" } ?? "")
  }

  // MARK: - Debug

  func connects() { logger.debug("connecting") }

  func waits(_ time: Duration, failureCount: Int) {
    logger.debug(
      "waiting before the next attempt",
      metadata: ["milliseconds": "\(time / .milliseconds(1))", "failures": "\(failureCount)"])
  }

  func subscribed(to channel: String) {
    logger.debug("subscribed", metadata: ["channel": Self.escaped(channel)])
  }

  func unsubscribed(from channel: String) {
    logger.debug("unsubscribed", metadata: ["channel": Self.escaped(channel)])
  }

  func answers(_ challenge: Challenge) {
    logger.debug(
      "answered a challenge",
      metadata: [
        "scheme": Self.escaped("\(challenge.scheme)"), "realm": Self.escaped(challenge.realm ?? ""),
      ])
  }

  func fetchedAuthorization(for channel: String) {
    logger.debug("fetched an authorization", metadata: ["channel": Self.escaped(channel)])
  }

  // MARK: - Info

  func connected() { logger.info("connected") }

  /// - Parameter error: why, if the application did not close the client.
  func disconnected(_ error: MessagingClientError? = nil) {
    logger.info("disconnected", metadata: error.map(Self.metadata) ?? [:])
  }

  // MARK: - Warnings and errors

  /// The first failure in a row is a warning; while it lasts, ``waits(_:failureCount:)`` tells of the others.
  func fails(_ error: MessagingClientError, failureCount: Int) {
    logger.log(
      level: failureCount == 1 ? .warning : .debug, "the connection failed: trying again",
      metadata: Self.metadata(error))
  }

  func refusedCredentials() { logger.warning("the server refused the credentials") }

  /// - Parameter code: of a close frame, or the status of an error.
  func serverEnds(code: Int?) {
    logger.warning(
      "the server ends the connection", metadata: ["code": "\(code.map(String.init) ?? "none")"])
  }

  func outcomeUnknown() { logger.warning("the outcome of a request is not known") }

  func givesUp(_ error: MessagingClientError, channel: String? = nil) {
    var metadata = Self.metadata(error)
    if let channel { metadata["channel"] = Self.escaped(channel) }
    logger.error("gave up", metadata: metadata)
  }

  // MARK: - Values

  /// The message of an error is left out: it can have what a server says.
  private static func metadata(_ error: MessagingClientError) -> Logger.Metadata {
    var metadata: Logger.Metadata = ["code": "\(error.code)"]
    if let status = error.status { metadata["status"] = "\(status)" }
    return metadata
  }

  private static func escaped(_ text: String) -> Logger.MetadataValue {
    "\(EscapedText(text).text)"
  }
}

extension Logger {
  /// The logger of a configuration that names none: it writes nothing.
  static let silent = Logger(label: "datavault.client") { _ in SwiftLogNoOpLogHandler() }
}
