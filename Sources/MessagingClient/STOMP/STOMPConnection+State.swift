// What the connection of a client has.
extension STOMPConnection {
  /// A subscription.
  struct Entry {
    let feed: STOMPFeed
    /// Whether the server has confirmed it once, so that it is subscribed again after a lost connection.
    var isConfirmed = false
    /// The last connection by which it was subscribed.
    var generation: UInt64?
    var unsettled = STOMPUnsettled()
  }

  /// A request whose receipt has not come.
  struct Request {
    /// What it subscribes.
    let subscription: UInt64?
    /// Nil for a subscription that is made again.
    let waiter: CheckedContinuation<MessagingClientError?, Never>?
    let timeout: Task<Void, Never>
  }

  /// A connection that the server has accepted.
  struct Live {
    let link: any STOMPLink
    let server: STOMPServer
    /// Which of the client's connections it is.
    let generation: UInt64
  }

  /// How a connection ended, or an attempt to make one.
  struct End {
    var ending: STOMPEnding
    /// How long the server had accepted the connection; nil if it had not.
    var lifetime: Duration?
    /// Whether there is no use in another attempt.
    var isFinal = false
    /// Whether other credentials are tried now.
    var hasOtherCredentials = false
  }
}
