internal import DataVault
internal import SealedVFS

extension DatabaseKeys {
  /// Whether the database is sealed under the pending key.
  borrowing func pendingFits(_ header: SealedHeader) -> Bool {
    switch pending {
    case .none: false
    case .some(let pending): header.matches(key: pending)
    }
  }
}
