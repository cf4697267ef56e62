import MessagingClient
import Testing

/// Origins and locations, as they are read from URLs.
@Suite struct OriginTests {
  @Test(arguments: [
    ("https://example.com", "https://example.com"),
    ("https://example.com:443", "https://example.com"),
    ("wss://example.com", "https://example.com"), ("WSS://Example.COM", "https://example.com"),
    ("http://example.com:80", "http://example.com"),
    ("ws://example.com:8080", "http://example.com:8080"),
    ("https://example.com:80", "https://example.com:80"),
    ("http://a_b.example", "http://a_b.example"),
    ("https://[::1]", "https://[::1]"), ("https://[0:0:0:0:0:0:0:1]:8443", "https://[::1]:8443"),
    ("https://[2001:DB8::00A]", "https://[2001:db8::a]"),
    ("http://127.0.0.1:1", "http://127.0.0.1:1"),
    ("http://xn--bcher-kva.example", "http://xn--bcher-kva.example"),
  ])
  func `an origin has one form`(text: String, form: String) throws {
    let origin = try Origin(text)
    #expect("\(origin)" == form)
    #expect(try Origin(form) == origin)
  }

  @Test(arguments: [
    ("http://localhost", true), ("http://LOCALHOST:9", true), ("http://127.0.0.1", true),
    ("ws://127.255.255.254", true), ("http://[::1]", true), ("http://128.0.0.1", false),
    ("http://127.0.0.1.example.com", false), ("http://localhost.example.com", false),
    ("http://a.localhost", false), ("http://[::2]", false), ("http://[::ffff:127.0.0.1]", false),
    ("http://0.0.0.0", false), ("http://127.example", false),
  ])
  func `only this machine's own addresses are loopback`(text: String, isLoopback: Bool) throws {
    #expect(try Origin(text).isLoopback == isLoopback)
  }

  @Test func `only https and wss are protected`() throws {
    #expect(try ["https://h", "wss://h"].allSatisfy { try Origin($0).isProtected })
    #expect(try ["http://h:443", "ws://h"].allSatisfy { try !Origin($0).isProtected })
  }

  @Test(arguments: [
    "https://h/", "https://h/path", "https://h?q", "https://h#f", "https://u@h", "https://u:p@h",
    "h",
    "https://", "//h", "ftp://h", "https:h", "https:/h", "",
  ])
  func `an origin is scheme, host and port alone`(text: String) {
    #expect(throws: LocationError.self) { try Origin(text) }
  }

  @Test(arguments: [0, -1, 65536]) func `a port outside 1 to 65535 is refused`(port: Int) {
    #expect(throws: LocationError.self) { try Origin(.https, host: "h", port: port) }
  }

  /// What makes two readers see two hosts, or a resolver another address.
  @Test(arguments: [
    "http://", "http:///foo", "http://:80", "http://h:", "http://h:0", "http://h:080",
    "http://h:65536",
    "http://h:99999999999999999999", "http://h:-1", "http://h:+1", "http://h:8o", "http://h:1:2",
    "http://h h", "http://h\n", "http://h\r\nHost: x", "http://h\t", "http://h\u{0}",
    "http://h\\@x",
    "http://a@b@c", "http://@h", "http://:p@h", "http://a..b", "http://.a", "http://a.", "http://.",
    "http://h*", "http://*", "http://2130706433", "http://0x7f000001", "http://0x7f.1",
    "http://127.1",
    "http://127.0.0.01", "http://127.0.0.256", "http://1.2.3.4.5", "http://a.0x", "http://a.1",
    "http://[::1", "http://::1", "http://[::1]x", "http://[fe80::1%25eth0]", "http://[::g]",
    "http://[]", "http://[127.0.0.1]", "http://[::1]:", "http://h%41", "http://bücher.example",
    "http://\u{202E}h", "http://h/\u{202E}", "http://h/ü", "http://h/ ", "http://h/%",
    "http://h/%4",
    "http://h/%zz", "http://h/%+1", "http://h/%0a", "http://h/%00", "http://h/%7F", "http://u%0d@h",
    "http://u%ff@h", "http://h//a", "http://h/a//b", "http://h/.", "http://h/..", "http://h/a/../b",
    "http://h/%2e%2E/b", "http://h/a/./b", "javascript://h", "file:///etc", "HTTPX://h", "://h",
    " http://h",
    "http//h", "h", "h:80", "\"http://h\"", "http://h/\"", "http://h/<", "http://h/{", "http://h/|",
    "http://h/^",
  ])
  func `a hostile location is refused`(text: String) {
    #expect(throws: LocationError.self) { try Location(text) }
  }

  @Test func `names and texts have a greatest length`() throws {
    let label = String(repeating: "a", count: 63)
    #expect(throws: Never.self) { try Location("http://\(label).b/") }
    #expect(throws: LocationError.self) { try Location("http://\(label)a.b/") }
    #expect(throws: Never.self) {
      try Location("http://\(label).\(label).\(label).\(label.dropLast(2))")
    }
    #expect(throws: LocationError.self) {
      try Location("http://\(label).\(label).\(label).\(label)")
    }
    let path = String(repeating: "p", count: Location.maximumByteCount - 9)
    #expect(throws: Never.self) { try Location("http://h/\(path)") }
    let error = #expect(throws: LocationError.self) { try Location("http://h/\(path)p") }
    #expect(error?.code == .tooLong)
  }

  @Test func `a location shows everything but its password and its query`() throws {
    let location = try Location("wss://ann%20b:s3cr%3At@Example.com:8443/a/%41?token=q#f")
    #expect("\(location)" == "https://ann%20b@example.com:8443/a/%41")
    #expect(location.user == "ann b")
    #expect(location.path == "/a/%41")
    #expect(location.hasPassword)
    var dumped = ""
    dump(location, to: &dumped)
    for text in [
      "\(location)", String(reflecting: location), dumped,
      "\(Mirror(reflecting: location).children.map { $0 })",
    ] {
      #expect(!text.contains("s3cr") && !text.contains("token"))
    }
    #expect(try "\(Location("ws://h"))" == "http://h/")
    #expect(try !Location("ws://u:@h").hasPassword)
  }

  @Test func `an error does not repeat a password`() {
    for text in ["ftp://u:s3cret@h", "http://u:s3cret@h:x", "http://u:s3cret@h h", "u:s3cret@h"] {
      let error = #expect(throws: LocationError.self) { try Location(text) }
      #expect(
        error.map { !"\($0)".contains("s3cret") && !String(reflecting: $0).contains("s3cret") }
          == true)
    }
  }

  @Test func `locations with different passwords are different`() throws {
    #expect(try Location("http://u:a@h") == Location("http://u:a@h:80"))
    #expect(try Location("http://u:a@h") != Location("http://u:b@h"))
    #expect(try Location("http://u:a@h") != Location("http://u@h"))
  }

  @Test func `a location without a scheme needs a default`() throws {
    #expect(throws: LocationError.self) { try Location("h/a") }
    #expect(try "\(Location("h/a?u=http://x", defaultScheme: .https))" == "https://h/a")
  }
}
