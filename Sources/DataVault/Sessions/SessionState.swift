/// What a vault that was opened through a session finds when it looks again.
package enum SessionState: Sendable, Equatable {
  case live(SessionKey)
  case over(SessionEnd)

  /// Decides on what the keyring says.
  ///
  /// An entry that is gone before its time was revoked: the keyring remembers for some minutes
  /// which have expired.
  package init(_ entry: KeyringEntry, key: SessionKey, now: Duration) {
    self =
      switch entry {
      case .present where now < key.deadline: .live(key)
      case .absent where now < key.deadline: .over(.ended)
      case .present, .absent, .expired: .over(.expired)
      }
  }
}

/// How a session went.
package enum SessionEnd: Sendable, Equatable {
  /// Somebody ended it: `datavault lock`.
  case ended
  /// Its time was over.
  case expired
}
