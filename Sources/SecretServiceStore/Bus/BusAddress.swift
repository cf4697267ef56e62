internal import Glibc

/// Where the user's session bus is.
enum BusAddress {
  /// `$DBUS_SESSION_BUS_ADDRESS`, else the socket that systemd keeps in the runtime directory.
  ///
  /// Never "autolaunch", which GLib would try next: it starts a bus of its own, on which nobody
  /// keeps a secret.
  static func ofSession() throws(BusFailure) -> String {
    if let address = variable("DBUS_SESSION_BUS_ADDRESS") { return address }
    let directory = variable("XDG_RUNTIME_DIR") ?? "/run/user/\(geteuid())"
    var status = stat()
    guard unsafe stat("\(directory)/bus", &status) == 0 else {
      throw BusFailure(
        .unreachable,
        "there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set, and there is no \(directory)/bus"
      )
    }
    return "unix:path=\(directory)/bus"
  }

  private static func variable(_ name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
  }
}
