import StrictJSON
import TestSupport
import Testing

@testable import MessagingServer

@Suite struct FilterFaultTests {
  private func fault(_ text: String) -> FilterFault? {
    do throws(FilterFault) {
      _ = try FilterExpression(text)
      return nil
    } catch {
      return error
    }
  }

  /// One fault each.
  @Test(
    arguments: [
      ("data.", .missingName, 5),
      ("data.* == 1", .missingName, 5),
      ("data.1", .missingName, 5),
      ("data .a", .missingOperator, 5),
      ("data[", .invalidIndex, 5),
      ("data[-1]", .invalidIndex, 5),
      ("data[a]", .invalidIndex, 5),
      ("data[99999999999999999999]", .invalidIndex, 5),
      ("data[1", .missingBracket, 6),
      ("data['a' 1]", .missingBracket, 9),
      ("a ==", .missingOperand, 4),
      ("== a", .missingOperand, 0),
      ("a == == b", .missingOperand, 5),
      ("a && ", .missingOperand, 5),
      ("!", .missingOperand, 1),
      ("()", .missingOperand, 1),
      ("(1,)", .missingOperand, 3),
      ("+1", .missingOperand, 0),
      ("a.b = 1", .missingOperator, 4),
      ("a b", .missingOperator, 2),
      ("a LIKEb", .missingOperator, 2),
      ("a)", .missingOperator, 1),
      ("1 (2)", .missingOperator, 2),
      ("a == 'x' ;", .missingOperator, 9),
      ("(a", .missingParenthesis, 2),
      ("(1, 2", .missingParenthesis, 5),
      ("a == 'x", .unterminatedText, 5),
      (#"a == 'x\'"#, .unterminatedText, 5),
      (#"a == '\"#, .unterminatedText, 5),
      ("a['x]", .unterminatedText, 2),
      ("1.", .invalidNumber, 0),
      ("a == 01", .invalidNumber, 5),
      ("0x10", .invalidNumber, 0),
      ("1e999", .invalidNumber, 0),
      ("5abc", .invalidNumber, 0),
      ("1.2.3", .invalidNumber, 0),
      ("1 < a < 3", .chainedComparison, 6),
      ("a == b LIKE c", .chainedComparison, 7),
      ("\u{0}", .missingOperand, 0),
    ] as [(String, FilterFault.Reason, Int)])
  func `a fault says what and where`(text: String, reason: FilterFault.Reason, offset: Int) {
    #expect(fault(text) == FilterFault(reason: reason, offset: offset))
  }

  @Test func `a filter up to each bound is accepted, and beyond it refused`() {
    let long = "a" + String(repeating: " ", count: FilterExpression.maximumByteCount - 1)
    #expect(fault(long) == nil)
    #expect(fault(long + " ") == FilterFault(reason: .tooLong, offset: 4_096))
    for (open, close) in [("(", ")"), ("!", ""), ("-", "")] {
      func nested(_ count: Int) -> String {
        String(repeating: open, count: count) + "1" + String(repeating: close, count: count)
      }
      #expect(fault(nested(32)) == nil)
      #expect(fault(nested(33)) == FilterFault(reason: .tooDeep, offset: 33))
    }
    // 128 operands and 127 operators.
    let wide = "1" + String(repeating: "+1", count: 127)
    #expect(fault(wide) == nil && fault("-" + wide) == nil)
    #expect(fault(wide + "+1")?.reason == .tooManyNodes)
    #expect(fault("a" + String(repeating: ".b", count: 256))?.reason == .tooManyNodes)
  }

  @Test func `any text is a filter or has a fault within it`() {
    var random = SeededRandom(seed: 0xFA017)
    let pieces = [
      "a", "data", ".", "[", "]", "0", "'", "\"", "\\", "(", ")", ",", "!", "=", "<", ">", "&", "|",
      "~", "^", "-",
      "+", "*", "/", "%", " ", "LIKE", "contains", "1e", "é", "\u{0}", "true", " == ", "'x'",
      "data.b", "[1]",
    ]
    var acceptedCount = 0
    for _ in 0..<20_000 {
      let text = (0..<1 + random.next(12)).map { _ in pieces[random.next(pieces.count)] }.joined()
      if let fault = fault(text) {
        #expect(0...text.utf8.count ~= fault.offset, "\(text)")
      } else {
        acceptedCount += 1
        _ = try? matches(text, data: #"{"b":[1,"x"]}"#, meta: #"{"a":"x"}"#)
      }
    }
    #expect(acceptedCount > 500, "\(acceptedCount)")
  }

  @Test func `a fault's text does not contain the filter's`() {
    let text = fault("meta.secret == 'x' y")?.description
    #expect(text == "the filter expression lacks an operator, at byte 19")
  }
}
