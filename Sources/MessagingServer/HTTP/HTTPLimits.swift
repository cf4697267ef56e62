/// What a client can send, and how long it can take.
package struct HTTPLimits: Sendable {
  /// The longest path with its query, in bytes: three for each byte of the largest message.
  ///
  /// Default: 100 KiB.
  package var targetByteCount = 100 << 10
  /// The largest body as it is sent, in bytes.
  ///
  /// Default: 128 KiB.
  package var bodyByteCount = 128 << 10
  /// The most header fields.
  ///
  /// Default: 100.
  package var fieldCount = 100
  /// How long a client can take to send a request, from its first byte or from the connection.
  ///
  /// Default: 30 seconds.
  package var requestTime: Duration = .seconds(30)
  /// How long a connection stays open without a request.
  ///
  /// It is longer than the clients' own limits, so that a request rarely meets a closing connection. Default: 6 minutes.
  package var idleTime: Duration = .seconds(360)
  /// How long a client can read nothing of an answer.
  ///
  /// Default: 30 seconds.
  package var answerTime: Duration = .seconds(30)

  /// The proxies whose `X-Forwarded-For` names the client, by which failed logins are counted.
  ///
  /// Default: none.
  package var trustedProxies: Set<TrustedProxy> = []

  /// How many requests a connection can send.
  var rate = RequestRate.Limits()

  package init() {}
}
