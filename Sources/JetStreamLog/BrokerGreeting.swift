internal import Glibc
internal import StrictJSON

/// What a broker says before a client logs in, in the clear also where TLS follows: libnats keeps it to itself.
enum BrokerGreeting {
  private static let mostBytes = 64 << 10
  private static let timeoutMilliseconds: Int32 = 1_000

  /// The version that the broker at an address says it has; nil if it does not in a second.
  ///
  /// Nothing proves it. It is for warnings alone.
  static func version(of address: String) -> String? {
    guard let line = greeting(of: address), line.starts(with: "INFO ".utf8),
      let members = try? JSONReader.object(Array(line.dropFirst(5)), maximumDepth: 8)
    else { return nil }
    return members["version"]?.string?.printable
  }

  /// What an operator should know of a version.
  static func warnings(version: String?) -> [String] {
    let parts = (version ?? "").split(separator: "-")[...].first?.split(separator: ".") ?? []
    let numbers = parts.compactMap { Int($0) }
    guard let version, numbers.count == 3 else { return [] }
    func isBefore(_ other: Int...) -> Bool { numbers.lexicographicallyPrecedes(other) }
    var warnings: [String] = []
    if isBefore(2, 10, 0) {
      warnings.append(
        "the broker has version \(version), which cannot sync always: a power cut of all brokers takes up to 5 minutes back"
      )
    }
    if isBefore(2, 9, 23) {
      warnings.append("version \(version) has the open advisory CVE-2023-47090: use one account")
    }
    if isBefore(2, 10, 27) || numbers[..<2] == [2, 11] && isBefore(2, 11, 1) {
      warnings.append(
        "version \(version) has the open advisory CVE-2025-30215: let no one else have an account")
    }
    if isBefore(2, 11, 15) || numbers[..<2] == [2, 12] && isBefore(2, 12, 6) {
      warnings.append(
        "version \(version) has open advisories of 2026: let only nodes reach the brokers")
    }
    return warnings
  }

  /// The first line that comes over a new connection.
  private static func greeting(of address: String) -> [UInt8]? {
    guard let (host, port) = BrokerSettings.endpoint(of: address) else { return nil }
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    guard unsafe getaddrinfo(host, String(port), &hints, &found) == 0, let first = unsafe found
    else { return nil }
    defer { unsafe freeaddrinfo(found) }
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = unsafe socket(first.pointee.ai_family, kind, 0)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    _ = unsafe connect(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen)
    var line: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 4_096)
    let end = ContinuousClock.now + .milliseconds(Int(timeoutMilliseconds))
    while ContinuousClock.now < end, line.count < mostBytes {
      var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard unsafe poll(&waiting, 1, timeoutMilliseconds) == 1 else { return nil }
      let count = unsafe recv(descriptor, &piece, piece.count, 0)
      guard count > 0 else { return nil }
      line += piece[..<count]
      if let lineEnd = line.firstIndex(of: UInt8(ascii: "\r")) { return Array(line[..<lineEnd]) }
    }
    return nil
  }
}
