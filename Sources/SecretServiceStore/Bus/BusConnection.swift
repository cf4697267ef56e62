internal import CGIO
internal import Dispatch
internal import FileLayer
internal import Glibc

/// The side of a call over the bus.
package enum BusMoment: Sendable, CaseIterable {
  /// Before the call: the service has not received it.
  case beforeCall
  /// After the call: the service has carried it out, but the store has not received the answer.
  case afterCall
}

/// The time to wait for a slow or malicious peer.
package struct BusTimeouts: Sendable {
  /// The timeout for the answer to one call; the first one includes the start of the service.
  let answer: Duration
  /// The timeout for all answers over one connection together.
  ///
  /// Otherwise a service that answers each call just in time could delay its caller once for each
  /// item.
  let conversation: Duration

  package init(answer: Duration, conversation: Duration) {
    self.answer = answer
    self.conversation = conversation
  }

  /// 25 seconds for a call, which is the default of D-Bus, and a minute for all calls.
  package static let standard = BusTimeouts(answer: .seconds(25), conversation: .seconds(60))
}

/// A private connection to a message bus.
///
/// libsecret uses the process's shared connection. That one can end the process when the bus ends,
/// and it stays closed when the bus comes back.
@safe struct BusConnection: ~Copyable {
  /// The usual maximum size of an answer in bytes: the paths of 20,000 items.
  private static let usualByteCount = 1 << 20

  private let connection: OpaquePointer
  private let service: String
  private let timeouts: BusTimeouts
  private let end: ContinuousClock.Instant
  private let mayContinue: (@Sendable (BusMoment) -> Bool)?

  /// Connects; this and every later call give up after their part of `timeouts`.
  ///
  /// - Parameter service: the name that the called service has on the bus.
  init(
    address: String, service: String, timeouts: BusTimeouts,
    mayContinue: (@Sendable (BusMoment) -> Bool)?
  ) throws(BusFailure) {
    end = .now + timeouts.conversation
    let deadline = BusDeadline(after: timeouts.answer)
    var error: UnsafeMutablePointer<GError>?
    let flags = GDBusConnectionFlags(
      rawValue: G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT.rawValue
        | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION.rawValue)
    guard
      let connection = unsafe g_dbus_connection_new_for_address_sync(
        address, flags, nil, deadline.cancellable, &error)
    else {
      let words = unsafe Self.takeMessage(error)
      throw BusFailure(.unreachable, "the session bus does not answer: \(words)")
    }
    unsafe self.connection = connection
    self.service = service
    self.timeouts = timeouts
    self.mayContinue = mayContinue
  }

  deinit {
    unsafe g_dbus_connection_close_sync(connection, nil, nil)
    unsafe g_object_unref(UnsafeMutableRawPointer(connection))
  }

  /// Calls a method and waits for its result.
  ///
  /// The bus starts the service if it can.
  ///
  /// - Parameters:
  ///   - type: the expected result type, in D-Bus notation. A result of another type is not parsed.
  ///   - byteCount: the maximum size of a result that is parsed, in bytes. Parsing makes small
  ///     values grow to many times their size.
  /// - Throws: `misunderstood` for a result of another type or a larger one.
  func call(
    _ method: String, of interface: String, on path: String, _ arguments: BusValue...,
    answering type: String, of byteCount: Int = usualByteCount
  ) throws(BusFailure) -> [BusValue] {
    try pass(.beforeCall)
    let wait = min(timeouts.answer, end - .now)
    guard wait > .zero else {
      throw BusFailure(
        .unanswered,
        "the secret service took more than \(timeouts.conversation.components.seconds) seconds")
    }
    var error: UnsafeMutablePointer<GError>?
    let reply = unsafe g_dbus_connection_call_sync(
      connection, service, path, interface, method, BusValue.tuple(arguments).makeVariant(), nil,
      G_DBUS_CALL_FLAGS_NONE, Int32(clamping: wait.wholeMilliseconds), nil, &error)
    guard let reply = unsafe reply else { throw unsafe Self.takeFailure(error) }
    defer { unsafe g_variant_unref(reply) }
    try pass(.afterCall)
    guard unsafe String(cString: g_variant_get_type_string(reply)) == type,
      unsafe g_variant_get_size(reply) <= byteCount
    else { throw .misunderstood }
    return unsafe BusValue(reply).elements ?? []
  }

  private func pass(_ moment: BusMoment) throws(BusFailure) {
    guard mayContinue?(moment) != false else {
      throw BusFailure(.unanswered, "the conversation was ended at a call")
    }
  }

  /// Converts the error and frees it.
  private static func takeFailure(_ error: UnsafeMutablePointer<GError>?) -> BusFailure {
    let name = unsafe g_dbus_error_get_remote_error(error)
    defer { unsafe g_free(name) }
    _ = unsafe g_dbus_error_strip_remote_error(error)
    let remoteName = unsafe name.map { unsafe String(cString: $0) }
    let words = unsafe takeMessage(error)
    // An error without a name was not a message: the connection closed, or the call timed out.
    guard let remoteName else { return BusFailure(.unanswered, words) }
    return BusFailure(named: remoteName, words)
  }

  private static func takeMessage(_ error: UnsafeMutablePointer<GError>?) -> String {
    guard let error = unsafe error else { return "no reason given" }
    defer { unsafe g_error_free(error) }
    return unsafe String(cString: error.pointee.message)
  }
}

/// Cancels a connection attempt to a bus that accepts it and then does not answer.
///
/// Unchecked: GCancellable supports use from several threads.
@safe private final class BusDeadline: @unchecked Sendable {
  let cancellable: UnsafeMutablePointer<GCancellable>?

  init(after duration: Duration) {
    unsafe cancellable = g_cancellable_new()
    let time = DispatchTime.now() + .milliseconds(Int(duration.wholeMilliseconds))
    DispatchQueue.global().asyncAfter(deadline: time) { [weak self] in
      if let self { unsafe g_cancellable_cancel(self.cancellable) }
    }
  }

  deinit {
    unsafe g_object_unref(UnsafeMutableRawPointer(cancellable))
  }
}

/// The address of the user's session bus.
enum BusAddress {
  /// `$DBUS_SESSION_BUS_ADDRESS`, otherwise systemd's socket in the runtime directory.
  ///
  /// "autolaunch", which GLib would try next, is not used: it starts a new bus, where no service
  /// keeps secrets.
  static func ofSession() throws(BusFailure) -> String {
    if let address = environmentVariable("DBUS_SESSION_BUS_ADDRESS") { return address }
    let directory = environmentVariable("XDG_RUNTIME_DIR") ?? "/run/user/\(geteuid())"
    var status = stat()
    guard unsafe stat("\(directory)/bus", &status) == 0 else {
      throw BusFailure(
        .unreachable,
        "no session bus found: DBUS_SESSION_BUS_ADDRESS is not set, and \(directory)/bus does not exist"
      )
    }
    return "unix:path=\(directory)/bus"
  }
}

/// The value of an environment variable; nil if it is missing or empty.
func environmentVariable(_ name: String) -> String? {
  guard let value = unsafe getenv(name), unsafe value.pointee != 0 else { return nil }
  return unsafe String(cString: value)
}
