/// What a subscription gives.
public enum STOMPEvent: Sendable {
  case message(STOMPMessage)
  case status(Status)

  /// A state of a subscription, as an application can show it.
  public enum Status: Sendable, Hashable {
    /// Messages come: for the first time, or again after a lost connection.
    ///
    /// What was sent to a topic in between is lost. A queue has kept it, and gives again what was not acknowledged.
    case subscribed
    /// The connection is lost, and the client tries again.
    case disconnected
    /// The server is locked, stops, or has too much to do, and the client tries again.
    case waiting
  }
}

/// When a message of a subscription is acknowledged.
public enum STOMPAcknowledgeMode: String, Sendable, Hashable {
  /// The server acknowledges it when it has been sent: a client that ends then has lost it.
  case auto
  /// ``STOMPMessage/acknowledge()`` also acknowledges what the subscription got before it.
  case client
  /// ``STOMPMessage/acknowledge()`` acknowledges it alone.
  case clientIndividual = "client-individual"
}
