import MessagingClient
import TestSupport
import Testing

/// The parser of `WWW-Authenticate`.
@Suite struct ChallengeTests {
  /// The challenges in one text: scheme, data, parameters, extra words, and `!` for a fault.
  private func read(_ fields: String...) -> String {
    let list = ChallengeList(fields)
    let texts = list.challenges.map { challenge in
      let words =
        ["\(challenge.scheme)"] + (challenge.token68.map { ["<\($0)>"] } ?? [])
        + challenge.parameters.map { "\($0.name)=[\($0.value)]" }
        + challenge.extraWords.map { "+\($0)" }
      return words.joined(separator: " ")
    }
    return texts.joined(separator: "; ") + (list.fault == nil ? "" : "!")
  }

  private func answersBasic(_ challenge: Challenge) throws -> Bool {
    BasicChallengeHandler(ClosureLoginHandler { _ in nil }, answersApplicationBasic: true)
      .canHandle(
        ChallengeRequest(location: try Location("https://h"), challenge: challenge))
  }

  /// The rows that were found by driving Kaazing's parser, with the right result where theirs was wrong.
  @Test(
    arguments: [
      (#"Basic realm="a""#, ["Basic"], ["a"], [true]),
      (#"basic realm="a""#, ["Basic"], ["a"], [true]),
      (#"BASIC realm="a""#, ["Basic"], ["a"], [true]),
      (#"Application Basic realm="a""#, ["Application Basic"], ["a"], [true]),
      (#"application basic realm="a""#, ["Application Basic"], ["a"], [true]),
      ("Application Token foo", ["Application Token"], [nil], [false]),
      ("Application Negotiate x", ["Application Negotiate"], [nil], [false]),
      (#"Basic realm="a", charset="UTF-8""#, ["Basic"], ["a"], [true]),
      ("Basic realm=unq", ["Basic"], ["unq"], [true]),
      (#"Basic realm = "a""#, ["Basic"], ["a"], [true]),
      (#"Basic realm="a\"b""#, ["Basic"], [#"a"b"#], [true]),
      (#"Basic xrealm="zz""#, ["Basic"], [nil], [true]),
      (#"Basic realm="a", Negotiate"#, ["Basic", "Negotiate"], ["a", nil], [true, false]),
      (#"Negotiate, Basic realm="a""#, ["Negotiate", "Basic"], [nil, "a"], [false, true]),
      (
        #"Digest realm="d", nonce="n", Basic realm="b""#, ["Digest", "Basic"], ["d", "b"],
        [false, true]
      ),
    ] as [(String, [String], [String?], [Bool])])
  func `the table of challenges holds`(
    field: String, schemes: [String], realms: [String?], answered: [Bool]
  ) throws {
    let list = ChallengeList([field])
    #expect(list.fault == nil)
    #expect(list.challenges.map { "\($0.scheme)" } == schemes)
    #expect(list.challenges.map(\.realm) == realms)
    #expect(try list.challenges.map(answersBasic) == answered)
  }

  @Test(arguments: [
    ("", ""), ("  ", ""), (",", ""), (" , ,\t,", ""),
    ("Negotiate", "Negotiate"), (" Negotiate ", "Negotiate"),
    ("Negotiate,Negotiate", "Negotiate; Negotiate"),
    ("negotiate YII+/-._~==", "Negotiate <YII+/-._~==>"), ("Negotiate\tabc", "Negotiate <abc>"),
    ("Negotiate   abc= , Basic realm=x", "Negotiate <abc=>; Basic realm=[x]"),
    (#"Basic REALM="A", CharSet=utf-8"#, "Basic realm=[A] charset=[utf-8]"),
    (#"Basic charset="UTF-8", realm="a""#, "Basic charset=[UTF-8] realm=[a]"),
    (#"Basic realm="""#, "Basic realm=[]"),
    (#"Basic realm="a, Negotiate b""#, "Basic realm=[a, Negotiate b]"),
    (#"Basic realm="\a\\\,""#, #"Basic realm=[a\,]"#),
    ("Basic realm=\"a\tb\"", "Basic realm=[a\tb]"),
    (#"Basic realm="Zürich – 東京""#, "Basic realm=[Zürich – 東京]"),
    (#"Basic realm="a",,,nonce=1,"#, "Basic realm=[a] nonce=[1]"),
    ("Basic , realm=a", "Basic realm=[a]"),
    (
      #"Newauth realm="apps", type=1, title="Login to \"apps\"", Basic realm="simple""#,
      #"Newauth realm=[apps] type=[1] title=[Login to "apps"]; Basic realm=[simple]"#
    ),
    ("Foo a=b, Bar, Baz c", "Foo a=[b]; Bar; Baz <c>"),
    ("!#$%&'*+-.^_`|~ a=1", "!#$%&'*+-.^_`|~ a=[1]"),
    // By the grammar this is data with padding, and not a parameter without a value.
    ("Basic realm=", "Basic <realm=>"),
    // The schemes of two words.
    ("Application Basic", "Application Basic"), ("APPLICATION\tTOKEN", "Application Token"),
    ("Application   negotiate  YII=", "Application Negotiate <YII=>"),
    (
      #"Application Token realm="a", Application Basic realm="b""#,
      "Application Token realm=[a]; Application Basic realm=[b]"
    ),
    ("Application Token, Application Basic", "Application Token; Application Basic"),
    ("Application Token Token", "Application Token <Token>"),
    ("Application foo", "Application <foo>"),
    ("Application Basic=1", "Application basic=[1]"),
    ("Application Basic = 1", "Application basic=[1]"),
    ("Application", "Application"), ("Application, Basic", "Application; Basic"),
    ("Application Tokens x=1", "!"), ("Application Token/x", "Application <Token/x>"),
    ("Other Basic realm=a", "!"),
    // The extra words of Kaazing's gateway.
    (
      #"Application Basic realm="a" x y=z "q r" YII="#,
      #"Application Basic realm=[a] +x +y=z +"q r" +YII="#
    ),
    (#"Basic realm="a" x, Negotiate"#, "Basic realm=[a] +x; Negotiate"),
    ("Application Token foo bar", "Application Token <foo> +bar"),
    (#"Basic realm="a" "b, Negotiate""#, #"Basic realm=[a] +"b, Negotiate""#),
    (#"Basic realm="a" realm="b""#, "!"), (#"Basic realm="a" x, charset=1"#, "!"),
    (#"Basic charset=1 x"#, "!"), ("Negotiate abc def", "!"), (#"Basic realm="a" (x)"#, "!"),
    // Faults.
    (#"Basic realm="a", realm="b""#, "!"), (#"Basic realm="a", REALM=b"#, "!"),
    ("Foo a=1, b=2, A=3", "!"),
    (#"Basic realm="a"#, "!"), (#"Basic realm="a\"#, "!"), (#"Basic realm="a"b"#, "!"),
    (#"Basic realm='a b'"#, "!"),
    (#"Basic realm="a", ="b""#, "Basic realm=[a]!"),
    (#"Basic realm="a", Foo bar baz, Negotiate"#, "Basic realm=[a]!"),
    (#"Basic realm="a", Foo x="b"#, "Basic realm=[a]!"),
    (#"Negotiate, "x", Basic realm="a""#, "Negotiate!"),
    ("realm=a", "!"), (#"realm="a", Basic realm="b""#, "!"), ("Negotiate abc, a=b", "!"),
    ("=", "!"), ("\"", "!"),
    ("Basic realm=ü", "!"), ("Bäsic realm=a", "!"), ("Basic realm=a;b=c", "!"),
    ("Basic: realm=a", "!"),
    ("Basic realm=\"a\u{0}\"", "!"), ("Basic realm=\"a\r\n b\"", "!"),
    ("Negotiate, Basic realm=\"\u{7F}\"", "!"),
    ("Basic\nSet-Cookie: a=b", "!"),
  ])
  func `a field is read by RFC 9110`(field: String, expected: String) {
    #expect(read(field) == expected)
  }

  @Test func `a fault leaves the other fields alone`() {
    #expect(read("Negotiate, =", #"Basic realm="a""#, "\u{1}") == "Negotiate; Basic realm=[a]!")
    #expect(read(#"Digest realm="d""#, #"nonce="n", Basic realm="b""#) == "Digest realm=[d]!")
    #expect(read() == "")
  }

  @Test func `the challenges of the message server are read`() {
    let fields = [
      #"Basic charset="UTF-8", realm="shop""#, #"Application Basic charset="UTF-8", realm="shop""#,
      #"Application Token realm="shop""#,
    ]
    let list = ChallengeList(fields)
    #expect(list.fault == nil)
    #expect(list.challenges.map(\.scheme) == [.basic, .applicationBasic, .applicationToken])
    #expect(list.challenges.map(\.realm) == ["shop", "shop", "shop"])
  }

  @Test func `parameters are found without regard to case, and schemes compared so`() throws {
    let challenge = try #require(ChallengeList([#"dIGEST Qop="auth""#]).challenges.first)
    #expect(challenge["qOP"] == "auth")
    #expect(challenge["nonce"] == nil)
    #expect(challenge.scheme == Challenge.Scheme("Digest") && "\(challenge.scheme)" == "dIGEST")
    #expect(Set([Challenge.Scheme("a"), Challenge.Scheme("A")]).count == 1)
    #expect(challenge.scheme != .basic)
  }

  @Test func `bytes, challenges, parameters and words are bounded`() {
    let limit = ChallengeList.maximumByteCount
    let token = String(repeating: "a", count: limit - 10)
    #expect(ChallengeList(["Negotiate \(token)"]).challenges.first?.token68 == token)
    #expect(ChallengeList(["Negotiate \(token)", "a"]).challenges.isEmpty)
    let count = ChallengeList.maximumChallengeCount
    for fields in [
      [String](repeating: "A", count: count + 1),
      [[String](repeating: "A", count: count + 1).joined(separator: ",")],
    ] {
      #expect(ChallengeList(fields).challenges.count == count)
      #expect(ChallengeList(fields).fault != nil)
    }
    #expect(ChallengeList([String](repeating: "A", count: count)).fault == nil)
    let names = (0..<ChallengeList.maximumParameterCount).map { "p\($0)=1" }.joined(separator: ",")
    #expect(
      ChallengeList(["A \(names)"]).challenges.first?.parameters.count
        == ChallengeList.maximumParameterCount)
    #expect(ChallengeList(["B, A \(names),q=1"]).challenges.map { "\($0.scheme)" } == ["B"])
    let words = String(repeating: " w", count: ChallengeList.maximumParameterCount)
    #expect(
      ChallengeList(["A realm=r\(words)"]).challenges.first?.extraWords.count
        == ChallengeList.maximumParameterCount)
    #expect(ChallengeList(["A realm=r\(words) w"]).challenges.isEmpty)
  }

  @Test func `random mutations keep within the limits and never stop the program`() {
    var random = SeededRandom(seed: 2)
    let seeds = [
      #"Basic realm="a\"b", charset="UTF-8", Negotiate YII==, Application Token realm="t" x "y z""#,
      #"Digest realm="d", nonce = "n" , qop=auth,,Application Basic realm="ü""#,
      "Application Negotiate abc=, Foo bar",
    ]
    let pieces =
      Array("\"\\=, \tabB/-ü\u{0}\r\n\u{7F}\u{202E}😀Application Token Basic realm=") + ["\u{301}"]
    var faultless = 0
    for round in 0..<6000 {
      var text = Array(seeds[round % seeds.count])
      for _ in 0...random.next(6) {
        let place = random.next(text.count + 1)
        switch random.next(4) {
        case 0: text.insert(pieces[random.next(pieces.count)], at: place)
        case 1: if place < text.count { text.remove(at: place) }
        case 2: if place < text.count { text[place] = pieces[random.next(pieces.count)] }
        default: text = Array(text[place...] + text[..<place])
        }
      }
      let list = ChallengeList(
        round % 3 == 0 ? [String(text), String(text.reversed())] : [String(text)])
      #expect(list.challenges.count <= ChallengeList.maximumChallengeCount)
      for challenge in list.challenges {
        #expect(!"\(challenge.scheme)".utf8.contains { $0 < 0x20 || $0 > 0x7E })
        #expect(Set(challenge.parameters.map(\.name)).count == challenge.parameters.count)
        #expect(challenge.token68 == nil || challenge.parameters.isEmpty)
        #expect(
          !challenge.parameters.contains {
            $0.value.unicodeScalars.contains { $0.value < 0x20 && $0 != "\t" }
          })
      }
      faultless += list.fault == nil ? 1 : 0
    }
    #expect(faultless > 50)
  }
}
