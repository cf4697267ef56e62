import MessagingClient
import TestSupport
import Testing

/// The table of location patterns, and patterns against a model.
@Suite struct LocationPatternTests {
  /// The rows that were found by driving Kaazing's clients, with the result there: the quirks are theirs, and hold
  /// here.
  static let table: [(pattern: String, location: String, matches: Bool)] = [
    ("http://foo.example.com", "http://foo.example.com", true),
    ("foo.example.com", "ws://foo.example.com", true),
    ("foo.example.com", "http://foo.example.com/", true),
    ("foo.example.com", "ws://foo.example.com:80", true),
    ("foo.example.com", "https://foo.example.com", false),
    ("foo.example.com", "ws://foo.example.com/path", false),
    ("foo.example.com", "ws://FOO.example.com", false),
    ("http://foo.example.com", "ws://foo.example.com", true),
    ("ws://foo.example.com", "wss://foo.example.com", false),
    ("http://foo.example.com:443", "wss://foo.example.com", true),
    ("*", "foo.example.com", true),
    ("*", "foo.example.com:80", true),
    ("*", "foo.example.com/", true),
    ("*", "ws://foo.example.com", true),
    ("*", "http://foo.example.com/", true),
    ("*", "ws://localhost", true),
    ("*", "wss://foo.example.com", false),
    ("*:443", "https://foo.example.com", true),
    ("*", "ws://foo.example.com:8000", false),
    ("*", "ws://foo.example.com/path", false),
    ("*", "ws://foo.example.com:80/path", false),
    ("*", "ws://user:pass@foo.example.com", false),
    ("*:*", "foo.example.com/path", false),
    ("*:*", "user:pass@foo.example.com", false),
    ("*:*", "foo.example.com:8000", true),
    ("*:*", "wss://foo.example.com", true),
    ("*/*", "ws://foo.example.com/path1/path2", true),
    ("*/*", "ws://foo.example.com:8000/path1/path2", false),
    ("*/*", "ws://foo.example.com:80", false),
    ("*/*", "ws://foo.example.com:80/path1/path2", true),
    ("*@*", "ws://user:pass@foo.example.com", true),
    ("*@*", "ws://user@foo.example.com", true),
    ("*@*", "ws://user:pass@foo.example.com/path", false),
    ("*@*/*", "ws://user:pass@foo.example.com/path", true),
    ("admin:*@*/*", "admin:pass@foo.example.com/path", true),
    ("admin:admin@*/*", "admin:pass@foo.example.com/path", false),
    ("admin:admin@*/*", "admin:admin@foo.example.com/path", true),
    ("*:admin@*/*", "admin:foo@foo.example.com/path", false),
    ("*:admin@*/*", "bob:admin@foo.example.com/path", false),
    ("*:*/*", "ws://foo.example.com:8000/path1/path2", true),
    ("*:*/*", "ws://user:pass@foo.example.com:8000/p1/p2", false),
    ("*@*:*/*", "ws://foo.example.com:8000/path1/path2", false),
    ("*@*:*/*", "ws://user:pass@foo.example.com:8000/p1/p2", true),
    ("foo.example.com:80/path", "ws://foo.example.com/path", true),
    ("foo.example.com:*/*", "ws://foo.example.com:8181/path", true),
    ("foo.example.com:*/*", "ws://foo2.example.com:8181/path", false),
    ("foo.example.com:*/*", "ws://foo.example.com:8181", false),
    ("*.hostname.com:8000", "ws://foo.hostname.com:8000", true),
    ("*.hostname.com:8000", "ws://a.b.hostname.com:8000", true),
    ("*.hostname.com:8000", "ws://hostname.com:8000", false),
    ("*.hostname.com:8000/path", "ws://foo.hostname.com:8000/path", true),
    ("http://localhost:8000", "http://localhost", false),
    ("http://*.example.com", "http://foo.example.com:80", true),
    ("http://*/", "http://foo.example.com:80", true),
    ("sub.hostname.com:8000/path1/path2/*", "sub.hostname.com:8000/path1/path2", true),
    ("sub.hostname.com:8000/path1/*", "sub.hostname.com:8000/path1", false),
    ("h:8000/*", "h:8000", false),
    ("sub.h.com:8000/p1/p2/*", "sub2.h.com:8000/p1/p2", false),
    ("h:8000/a/*/c", "h:8000/a/b/c", false),
    ("h:8000/a/*/*", "h:8000/a/b", true),
    ("foo.*.com", "foo.bar.com", false),
    ("h/a", "h/a/b", false),
    ("h/a", "h/a/", true),
    ("h/a", "h/a?q=1", true),
    ("h/a", "h/A", false),
    ("h/a*", "h/ab", false),
    ("f*.example.com", "foo.example.com", false),
    ("*.0.0.1:8000/*", "ws://127.0.0.1:8000/x", true),
  ]

  @Test(arguments: table)
  func `the table of locations holds`(pattern: String, location: String, matches: Bool) throws {
    #expect(
      try LocationPattern(pattern).matches(Location(location, defaultScheme: .http)) == matches)
  }

  /// What the table does not have.
  @Test(arguments: [
    ("h/%61", "h/a", true), ("h/a", "h/%61", true), ("h/a%2Fb", "h/a/b", false),
    ("h/a%2Fb", "h/a%2fb", true),
    ("h/%2A", "h/x", false), ("h/%2A", "h/*", true), ("h/a//", "h/a", true),
    ("h/a#f", "h/a#g", true),
    ("h?q", "h", true), ("[::1]:8000/*", "ws://[0::1]:8000/a", true),
    ("*:8000", "ws://[::1]:8000", true),
    ("u:@h", "u@h", true), ("u@h", "u:p@h", false), ("u:*@h", "u@h", false),
    ("%75:%70@h", "u:p@h", true),
    ("*:*@h", "u:p@h", false), ("h/*/*", "h/b", false), ("h/*/*", "h/b/c", false),
    ("h/a/b/*/*/*", "h/a/b", true),
    ("*.com", "com", false), ("*.*.com", "a.b.com", false), ("https://h", "wss://h", true),
    ("https://h/a/*", "wss://h/a/b/c/d", true), ("Foo.example.com", "ws://Foo.example.com", true),
    ("h/a/b/*", "h/a", false), ("a@h/*", "a@h", false), ("h:80", "h", true), ("h:*", "h", true),
    ("u:p@h/*", "u:p@h", false),
  ])
  func `rows beyond the table hold`(pattern: String, location: String, matches: Bool) throws {
    #expect(
      try LocationPattern(pattern).matches(Location(location, defaultScheme: .http)) == matches)
  }

  @Test(arguments: [
    "", "h//a", "http://", "http:///foo", "WS://foo", "Http://foo", "ftp://h", "tcp://h:1", "h:x",
    "h:", "h:0",
    "h:8*", "@h", ":p@h", "a@b@h", "a..b", "h/a/../b", "h/%0a", "h/%2e", "h h", "h\n", "[::1",
    "[::1]x", "*/%",
    "h/\u{202E}", ".h", "h.",
  ])
  func `a text that is no pattern is refused`(text: String) {
    #expect(throws: LocationError.self) { try LocationPattern(text) }
  }

  @Test func `a pattern shows no password`() throws {
    let pattern = try LocationPattern("wss://ann:s3cret@*/a")
    #expect("\(pattern)" == "ann:...@*:443/a")
    var dumped = ""
    dump(pattern, to: &dumped)
    #expect(!dumped.contains("s3cret"))
  }

  @Test func `random patterns match what the model of Kaazing's tree matches`() throws {
    var random = SeededRandom(seed: 41)
    var matched = 0
    for _ in 0..<8000 {
      let location = RandomLocation.location(&random)
      let pattern = RandomLocation.pattern(&random, near: location)
      let expected = KaazingTree(pattern).matches(location)
      let result = try LocationPattern(pattern.text).matches(
        Location(location.text, defaultScheme: .http))
      #expect(result == expected, "\(pattern.text) \(location.text)")
      matched += result ? 1 : 0
    }
    #expect(matched > 1200)
  }
}
