internal import CLibsecret
internal import Dispatch
internal import VaultCrypto

/// A connection to the user's Secret Service, through libsecret.
///
/// The secret crosses the bus encrypted, if the service can do that, and is in libsecret's locked memory in between. If
/// the keyring is locked, libsecret has the service ask the user to unlock it.
///
/// libsecret uses the process's shared connection to the session bus. When the bus ends, that connection ends the
/// process by default, so the default is suspended as long as this exists.
///
/// https://gnome.pages.gitlab.gnome.org/libsecret/
@safe struct SecretService: ~Copyable {
  private let bus: OpaquePointer
  private let endedProcess: gboolean
  private let service: UnsafeMutablePointer<CLibsecret.SecretService>
  private let timeouts: KeyringTimeouts

  /// Connects to the bus and opens a session with the service, which the bus starts if it can.
  init(_ timeouts: KeyringTimeouts) throws(KeyringFailure) {
    let deadline = Deadline(after: timeouts.answer)
    let bus = unsafe try Self.require(deadline) {
      unsafe g_bus_get_sync(G_BUS_TYPE_SESSION, $0, &$1)
    }
    let endedProcess = unsafe g_dbus_connection_get_exit_on_close(bus)
    unsafe g_dbus_connection_set_exit_on_close(bus, 0)
    do throws(KeyringFailure) {
      // Not the service object that the process shares: it would outlive a restart of the service.
      let service = unsafe try Self.require(deadline) {
        unsafe secret_service_open_sync(
          clibsecret_service_type(), nil, SECRET_SERVICE_OPEN_SESSION, $0, &$1)
      }
      unsafe self.service = service
    } catch {
      unsafe Self.release(bus, endedProcess)
      throw error
    }
    unsafe self.bus = bus
    self.endedProcess = endedProcess
    self.timeouts = timeouts
  }

  deinit {
    unsafe g_object_unref(service)
    unsafe Self.release(bus, endedProcess)
  }

  private static func release(_ bus: OpaquePointer, _ endedProcess: gboolean) {
    unsafe g_dbus_connection_set_exit_on_close(bus, endedProcess)
    unsafe g_object_unref(UnsafeMutableRawPointer(bus))
  }

  // MARK: Items

  /// The secret of the item with these attributes; nil if there is none.
  ///
  /// - Throws: `locked` if the keyring stays locked.
  func secret(_ attributes: [String: String], byteCount: Int) throws(KeyringFailure) -> SecretBytes?
  {
    let items = unsafe try unlockedItems(attributes)
    defer { unsafe Self.free(items) }
    guard let item = unsafe items?.pointee.data?.assumingMemoryBound(to: SecretItem.self) else {
      return nil
    }
    _ = unsafe try Self.call(Deadline(after: timeouts.answer)) {
      unsafe secret_item_load_secret_sync(item, $0, &$1)
    }
    guard let value = unsafe secret_item_get_secret(item) else {
      throw KeyringFailure(.locked, "it did not return the secret of its item")
    }
    // This wipes libsecret's copy.
    defer { unsafe secret_value_unref(UnsafeMutableRawPointer(value)) }
    var count: gsize = 0
    let start = unsafe secret_value_get(value, &count)
    guard Int(count) == byteCount else {
      throw KeyringFailure(.unusable, "the keyring's item has \(count) bytes, not \(byteCount)")
    }
    return unsafe SecretBytes(byteCount: byteCount) { target in
      unsafe target.copyMemory(from: UnsafeRawBufferPointer(start: start, count: byteCount))
    }
  }

  /// Stores a secret in the default collection, in place of the item with the same attributes.
  ///
  /// Without a default collection, the service asks the user for the password of a new one.
  func store(
    _ secret: borrowing SecretBytes, label: String, _ attributes: [String: String]
  ) throws(KeyringFailure) {
    let value = unsafe secret.withUnsafeBytes { bytes in
      unsafe secret_value_new(
        bytes.baseAddress?.assumingMemoryBound(to: gchar.self), gssize(bytes.count), "text/plain")
    }
    defer { unsafe secret_value_unref(UnsafeMutableRawPointer(value)) }
    let table = unsafe Self.table(attributes)
    defer { unsafe g_hash_table_unref(table) }
    let isStored = unsafe try Self.call(Deadline(after: timeouts.person)) {
      unsafe secret_service_store_sync(
        service, clibsecret_unlock_key_schema(), table, SECRET_COLLECTION_DEFAULT, label, value,
        $0, &$1)
    }
    guard isStored != 0 else { throw .locked }
  }

  /// Removes the items with these attributes.
  ///
  /// - Returns: whether there were any.
  func remove(_ attributes: [String: String]) throws(KeyringFailure) -> Bool {
    let items = unsafe try unlockedItems(attributes)
    defer { unsafe Self.free(items) }
    var next = unsafe items
    while let entry = unsafe next {
      let item = unsafe entry.pointee.data?.assumingMemoryBound(to: SecretItem.self)
      let isRemoved = unsafe try Self.call(Deadline(after: timeouts.person)) {
        unsafe secret_item_delete_sync(item, $0, &$1)
      }
      guard isRemoved != 0 else { throw .locked }
      unsafe next = entry.pointee.next
    }
    return unsafe items != nil
  }

  // MARK: Locks

  /// The items with these attributes, after the user has unlocked what is locked.
  private func unlockedItems(
    _ attributes: [String: String]
  ) throws(KeyringFailure) -> UnsafeMutablePointer<GList>? {
    var items = unsafe try search(attributes)
    if unsafe items == nil {
      // Some services hide the items of a locked collection.
      guard try unlockDefaultCollection() else { return nil }
      unsafe items = try search(attributes)
    }
    do throws(KeyringFailure) {
      var next = unsafe items
      while let entry = unsafe next {
        let item = unsafe entry.pointee.data?.assumingMemoryBound(to: SecretItem.self)
        if unsafe secret_item_get_locked(item) != 0 { unsafe try unlock(entry.pointee.data) }
        unsafe next = entry.pointee.next
      }
    } catch {
      unsafe Self.free(items)
      throw error
    }
    return unsafe items
  }

  private func search(
    _ attributes: [String: String]
  ) throws(KeyringFailure) -> UnsafeMutablePointer<GList>? {
    let table = unsafe Self.table(attributes)
    defer { unsafe g_hash_table_unref(table) }
    return unsafe try Self.call(Deadline(after: timeouts.answer)) {
      unsafe secret_service_search_sync(
        service, clibsecret_unlock_key_schema(), table, SECRET_SEARCH_ALL, $0, &$1)
    }
  }

  /// - Returns: whether there was a locked one.
  private func unlockDefaultCollection() throws(KeyringFailure) -> Bool {
    let collection = unsafe try Self.call(Deadline(after: timeouts.answer)) {
      unsafe secret_collection_for_alias_sync(
        service, SECRET_COLLECTION_DEFAULT, SECRET_COLLECTION_NONE, $0, &$1)
    }
    guard let collection = unsafe collection else { return false }
    defer { unsafe g_object_unref(collection) }
    guard unsafe secret_collection_get_locked(collection) != 0 else { return false }
    unsafe try unlock(UnsafeMutableRawPointer(collection))
    return true
  }

  /// Has the user unlock an item or a collection.
  private func unlock(_ object: UnsafeMutableRawPointer?) throws(KeyringFailure) {
    let objects = unsafe g_list_append(nil, object)
    defer { unsafe g_list_free(objects) }
    let count = unsafe try Self.call(Deadline(after: timeouts.person)) {
      unsafe secret_service_unlock_sync(service, objects, $0, nil, &$1)
    }
    guard count > 0 else { throw .locked }
  }

  // MARK: Values for GLib

  private static func table(_ texts: [String: String]) -> OpaquePointer? {
    let table = unsafe g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)
    for (key, value) in texts { unsafe g_hash_table_insert(table, g_strdup(key), g_strdup(value)) }
    return unsafe table
  }

  private static func free(_ objects: UnsafeMutablePointer<GList>?) {
    unsafe g_list_free_full(objects, g_object_unref)
  }

  private typealias ErrorPointer = UnsafeMutablePointer<GError>?

  /// Calls a function of GLib's form, and converts and frees its error.
  private static func call<Result>(
    _ deadline: Deadline,
    _ body: (UnsafeMutablePointer<GCancellable>?, inout ErrorPointer) -> Result
  ) throws(KeyringFailure) -> Result {
    var error: ErrorPointer = nil
    let result = unsafe body(deadline.cancellable, &error)
    guard let error = unsafe error else { return result }
    defer { unsafe g_error_free(error) }
    if unsafe clibsecret_is_cancelled(error) != 0 {
      throw KeyringFailure(
        .unreachable,
        "the keyring did not answer within \(deadline.duration.components.seconds) seconds")
    }
    _ = unsafe g_dbus_error_strip_remote_error(error)
    throw KeyringFailure(
      unsafe clibsecret_is_locked(error) != 0 ? .locked : .unreachable,
      unsafe String(cString: error.pointee.message))
  }

  private static func require<Result>(
    _ deadline: Deadline,
    _ body: (UnsafeMutablePointer<GCancellable>?, inout ErrorPointer) -> Result?
  ) throws(KeyringFailure) -> Result {
    guard let result = unsafe try call(deadline, body) else {
      throw KeyringFailure(.unreachable, "libsecret gave no reason")
    }
    return result
  }
}

/// Cancels a call that takes too long.
///
/// Unchecked: GCancellable supports use from several threads.
@safe private final class Deadline: @unchecked Sendable {
  let cancellable: UnsafeMutablePointer<GCancellable>?
  let duration: Duration

  init(after duration: Duration) {
    self.duration = duration
    unsafe cancellable = g_cancellable_new()
    let time = DispatchTime.now() + duration / .seconds(1)
    DispatchQueue.global().asyncAfter(deadline: time) { [weak self] in
      if let self { unsafe g_cancellable_cancel(self.cancellable) }
    }
  }

  deinit {
    unsafe g_object_unref(UnsafeMutableRawPointer(cancellable))
  }
}
