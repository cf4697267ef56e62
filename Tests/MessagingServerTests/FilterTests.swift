import StrictJSON
import TestSupport
import Testing

@testable import MessagingServer

/// Whether a filter matches a message; both are JSON texts.
func matches(_ filter: String, data: String = "null", meta: String = "null") throws -> Bool {
  let filter = try FilterExpression(filter)
  var stepCount = 0
  return filter.matches(
    payload: try JSONReader.value(Array(data.utf8)), meta: try JSONReader.value(Array(meta.utf8)),
    &stepCount)
}

@Suite struct FilterTests {
  private static let data = """
    {"text":"Breaking news","score":85,"type":"sport","user":{"role":"admin","tags":["a","Urgent"]},
     "list":[1,2.5,"x",null],"id":17000000000000001,"my-field":1,"é":true,"like":"y","zero":0}
    """
  private static let meta = """
    {"priority":"high","region":"us-west","level":7,"uuid":"ana","string":"Match me","star":"match*",
     "numA":2,"numB":3,"numC":1,"numValue":5,"tags":["urgent","x"],"number5":"v5","user":{"role":"ops"},
     "data":"own"}
    """

  @Test func `each part of a filter is a step of its evaluation`() throws {
    var stepCount = 10
    #expect(try FilterExpression("1 && !0").matches(payload: .null, meta: .null, &stepCount))
    #expect(stepCount == 6)
  }

  /// The examples of PubNub's pages.
  @Test(arguments: [
    (#"(meta.priority == "high") && (data.score > 80)"#, true),
    (#"meta.priority == "high" && data.score > 90"#, false),
    (#"data.user["role"] == "admin""#, true),
    (#"meta.user["role"] == 'ops'"#, true),
    ("data.score != 0", true),
    ("meta.level > 5", true),
    ("data.score >= 80 && data.score <= 100", true),
    (#"data.type LIKE "sp*""#, true),
    (#"meta.tags CONTAINS "urgent""#, true),
    ("uuid != 'ana'", false),
    ("uuid != 'bob'", true),
    ("region == 'us-west' || region == 'us-east'", true),
    ("string == 'match'", false),
    ("string LIKE 'match*'", true),
    (#"string LIKE 'match\*'"#, false),
    (#"star LIKE 'MATCH\*'"#, true),
    ("('Anne','anna','Ann') LIKE 'ann*'", true),
    ("('Bob','bert') LIKE 'ann*'", false),
    ("('us-east','us-west') CONTAINS region", true),
    ("('a','b','c') CONTAINS region", false),
    ("string CONTAINS 'tch m'", true),
    ("(3,5,9) contains numValue", true),
    ("!((3,5,9) contains numValue)", false),
    ("number5 contains numValue", true),
    ("numValue > (numA + numB - numC)", true),
    ("(numA ^ numB) != (numValue * 10)", true),
    ("(~numA / numB) == -1", true),
    ("data.id % 10 == 1", true),
  ])
  func `a filter of PubNub's pages does what they say`(filter: String, expected: Bool) throws {
    #expect(try matches(filter, data: Self.data, meta: Self.meta) == expected)
  }

  @Test(
    arguments: [
      // Names and paths.
      ("data.list[1] == 2.5", true),
      ("data.list[ 0 ] == 1 && data.list[9] == null", true),
      (#"data["my-field"] == 1 && data['é'] && data.é"#, true),
      ("data.like LIKE 'Y'", true),
      ("meta.data == 'own' && priority == 'high' && user.role == 'ops'", true),
      ("true && !false && !null", true),
      ("truely == null", true),
      // What is not there is null.
      ("data.none == null", true),
      ("data.none != 'x'", true),
      ("data.none == 0", false),
      ("data.none < 1 || data.none >= 1", false),
      ("data.none LIKE '*' || data.none CONTAINS ''", false),
      ("data.none + 1 == null", true),
      ("data.text.length == null && data.list.x == null && data.user[0] == null", true),
      // Types.
      ("meta.level == '7'", false),
      ("data.text == 'breaking news'", false),
      ("data.text < 'z' || 'a' < 'b'", false),
      ("data.user == data.user", false),
      ("data.user != data.user", true),
      ("data.list == data.list", false),
      ("1 == 1.0 && 0.1 + 0.2 > 0.3", true),
      ("data.id == 17000000000000001 && data.id != 17000000000000002", true),
      ("9223372036854775807 + 1 == 9223372036854775808", true),
      ("1e400 == 1", nil),
      // What counts as true.
      ("data.zero", false), ("data.score", true), ("data.text", true), ("''", false),
      ("data.user && data.list", true), ("-0.0", false),
      // Operators.
      ("7 / 2 == 3.5 && 6 / 3 == 2", true),
      ("1 / 0 == null && 1 % 0 == null && 'a' + 'b' == null", true),
      ("-7 % 3 == -1 && 7.5 % 2 == 1.5", true),
      ("(6 & 3) == 2 && (6 | 3) == 7 && (6 ^ 3) == 5 && ~0 == -1 && 6.0 & 3 == 2", true),
      ("1.5 | 1 == null", true),
      ("data.list CONTAINS 2.5 && data.list CONTAINS null", true),
      ("data.user.tags LIKE 'urg*' && data.list LIKE 'X'", true),
      ("data.text CONTAINS 'breaking'", false),
      ("'v1.50' CONTAINS 1.50 && 'abc' CONTAINS ''", true),
      ("data.user CONTAINS 'role' || 5 CONTAINS 5", false),
      // Precedence: unary, * / %, + -, & ^ |, comparison, &&, ||.
      ("1 + 2 * 3 == 7 && 10 - 3 - 2 == 5", true),
      ("1 | 2 + 4 == 7 && 5 & 3 ^ 1 == 0", true),
      ("true || false && false", true),
      ("!numA == 2", false),
      ("- - 1 == 1 && --1 == 1 && !!true", true),
      // Strings.
      (#"'it\'s' == "it's" && 'a"b' == "a\"b" && '\\' CONTAINS '\\'"#, true),
      (#"'a\*b' == 'a*b' && '\n' == 'n'"#, true),
      // White space, and none.
      ("\tdata.score>80&&data.type=='sport'\r\n", true),
      ("'ab'LIKE'A*'", true),
      ("", true), (" ", true),
    ] as [(String, Bool?)])
  func `each operator does what the reference says`(filter: String, expected: Bool?) throws {
    let found = try? matches(filter, data: Self.data, meta: Self.meta)
    #expect(found == expected)
  }

  @Test(arguments: [
    ("", "", true), ("", "a", false), ("*", "", true), ("*", "abc", true), ("a", "A", true),
    ("a*", "a", true), ("a*a", "a", false), ("a*a", "aa", true), ("*a*", "bab", true),
    ("a*b*c", "aXbXc", true), ("a*b*c", "acb", false), ("*aab*", "aaab", true),
    ("*ab*ab*", "abab", true), ("*ab*ab*", "aab", false), ("**", "x", true),
    (#"\*"#, "*", true), (#"\*"#, "x", false), (#"\\*"#, #"\x"#, true), (#"a\"#, "a", true),
    ("É*", "éa", true), ("straße", "STRASSE", false), ("*σ", "ΟΔΥΣΣΕΥΣ", true),
    ("?.[a]^$", "?.[A]^$", true),
  ])
  func `LIKE knows one wildcard, and no case`(pattern: String, text: String, expected: Bool) {
    #expect(FilterPattern(pattern.utf8).matches(text) == expected)
  }

  @Test func `a filter says whether it reads the payload`() throws {
    #expect(try FilterExpression("meta.a == 'data.b' && c").readsPayload == false)
    #expect(try FilterExpression("a || data.b").readsPayload)
    #expect(try FilterExpression("data LIKE 'hello*'").readsPayload)
  }

  // MARK: Bounds

  @Test func `a filter that needs too many steps matches nothing`() throws {
    let text = String(repeating: "a", count: 32_000)
    let check = "!(data LIKE '*b*') && "
    #expect(try matches(String(repeating: check, count: 5) + "true", data: "\"\(text)\""))
    #expect(try !matches(String(repeating: check, count: 20) + "true", data: "\"\(text)\""))
    let members = (0..<5_000).map { "\"a\($0)\":1" }.joined(separator: ",")
    let reads = String(repeating: "data.b == null && ", count: 30)
    #expect(try !matches(reads + "true", data: "{\(members)}"))
  }

  @Test(.timeLimit(.minutes(10)))
  func `LIKE and CONTAINS take time in proportion to the text`() {
    let part = Array(repeating: UInt8(ascii: "a"), count: 100_000) + Array("b".utf8)
    let text = Array(repeating: UInt8(ascii: "a"), count: 300_000)
    #expect(FilterPattern.end(of: part, in: text[...]) == nil)
    #expect(FilterPattern.end(of: part, in: (text + part)[...]) == 400_001)
  }
}
