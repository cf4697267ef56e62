internal import MessagingQueue

/// Who connects, as the frame CONNECT says.
struct STOMPConnecting: Sendable, Equatable {
  let host: String?
  let login: String?
  let passcode: String?
}

extension STOMPSession {
  /// What is to be done about what came in.
  enum Action {
    case send(STOMPFrame)
    /// Send a leased message, and call ``didSend(_:of:)`` when the system has taken it.
    case sendLeased(STOMPFrame, number: UInt64, subscription: Int)
    /// Decide, and call ``connected(_:)`` or end.
    case authenticate(STOMPConnecting)
    /// Decide, and begin, or call ``refused(_:)`` with the receipt that the frame asked for.
    case subscribe(STOMPSubscription, receipt: String?)
    /// End what the subscription gets, and release its leases without counting an attempt.
    case unsubscribe(STOMPSubscription, [LeaseToken])
    /// Decide about a publication of a transaction, and call ``refused(_:)`` with the receipt if it is refused.
    case authorize(STOMPPublication, receipt: String?)
    /// Decide about the publications, and do all or nothing.
    case perform([STOMPOperation], receipt: String?)
    /// These are no longer the client's, which did not see them.
    case giveBack([LeaseToken])
    /// The subscription can take so many more.
    case credit(Int, subscription: Int)
    /// Send a receipt, after everything before it.
    case receipt(String)
    /// Close, after everything before it.
    case close
    /// Send an error and close, after everything before it.
    case fail(STOMPEnding)
    /// Send an error and close.
    case end(STOMPEnding)
  }
}
