internal import GRDB
internal import SealedVFS
internal import Synchronization

/// Which registration belongs to which open pool or queue, so that questions about one can be
/// answered as long as it lives.
enum OpenDatabases {
  private struct Entry: Sendable {
    weak let reader: (any DatabaseReader)?
    // Weak: it goes with the pool's configuration, and the key with it.
    weak let registration: KeyRegistration?
  }

  private static let entries = Mutex<[ObjectIdentifier: Entry]>([:])

  /// Remembers a pool or queue; what is gone is forgotten at the same time.
  static func add(_ reader: any DatabaseReader, _ registration: KeyRegistration) {
    entries.withLock { entries in
      entries = entries.filter { $0.value.reader != nil }
      entries[ObjectIdentifier(reader)] = Entry(reader: reader, registration: registration)
    }
  }

  /// The registration of a pool or queue that `SealedDatabase` opened; nil for any other.
  static func registration(of reader: any DatabaseReader) -> KeyRegistration? {
    entries.withLock { entries in
      guard let entry = entries[ObjectIdentifier(reader)], entry.reader === reader else {
        return nil
      }
      return entry.registration
    }
  }
}
