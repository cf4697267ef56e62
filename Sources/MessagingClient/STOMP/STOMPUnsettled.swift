/// The messages of a subscription that its connection can settle, in the order in which they came.
///
/// A server ends the connection for an acknowledgement that it does not expect, so that the client must know.
struct STOMPUnsettled: Sendable, Equatable {
  private var ids: [String] = []

  /// Adds a message.
  mutating func add(_ id: String) { ids.append(id) }

  /// Takes a message, and in the mode `client` all before it; false if it was settled before.
  mutating func take(_ id: String, _ mode: STOMPAcknowledgeMode) -> Bool {
    guard let index = ids.firstIndex(where: { $0.utf8.elementsEqual(id.utf8) }) else {
      return false
    }
    switch mode {
    case .auto: return false
    case .client: ids.removeSubrange(...index)
    case .clientIndividual: ids.remove(at: index)
    }
    return true
  }
}
