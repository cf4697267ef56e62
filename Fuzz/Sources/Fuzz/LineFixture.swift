import Foundation
@_spi(Testing) import MessagingQueue
import SystemPackage

/// Untrusted lines of JSON to publish, and files of messages to import.
final class LineFixture {
  /// Far fewer digits than a `Double` has, so that Foundation keeps every digit.
  private static let longestNumberByteCount = 12

  private let lines: [[UInt8]]
  private let file: [UInt8]
  private let path: FilePath

  init() {
    let name = "datavault-fuzz-\(getpid()).ndjson"
    path = FilePath(FileManager.default.temporaryDirectory.appendingPathComponent(name).path)
    lines = Self.texts.map { Array($0.utf8) }
    file = Array((Self.texts.joined(separator: "\n") + "\n").utf8)
    require(lineCount(of: file) == lines.count, "the unchanged file is refused")
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    switch edits.mode & 3 {
    case 0:
      var bytes = file
      edits.apply(to: &bytes)
      check(file: bytes)
    case 1:
      // The digest is made to fit, so that the harness tests the lines.
      var bytes = Array(file[..<(file.dropLast().lastIndex(of: 0x0A)! + 1)])
      edits.apply(to: &bytes)
      let count = bytes.count { $0 == 0x0A }
      let messages = bytes.split(separator: 0x0A).count {
        $0.starts(with: #"{"record":"message""#.utf8)
      }
      let end = #"{"record":"end","messages":\#(messages),"lines":\#(count)}"# + "\n"
      check(file: bytes + Array(end.utf8))
    case 2:
      var line = lines[Int(edits.mode >> 2) % lines.count]
      edits.apply(to: &line)
      check(line)
    default: check(Array(input.dropFirst()))
    }
  }

  /// A line that is read and written must be read as equal again, and Foundation must read it too.
  private func check(_ line: [UInt8]) {
    guard let plain = ExchangeProbe.plain(line) else {
      require(ExchangeProbe.record(line) == nil, "a record is not JSON")
      return
    }
    require(ExchangeProbe.plain(plain) == plain, "a line changes when written")
    let found = try? JSONSerialization.jsonObject(with: Data(line))
    require(found is [String: Any] || hasLongNumber(plain), "Foundation refuses a line")
    guard let record = ExchangeProbe.record(line) else { return }
    require(ExchangeProbe.record(Array(record.dropLast())) == record, "a record changes")
  }

  private func check(file bytes: [UInt8]) {
    guard let count = lineCount(of: bytes) else { return }
    let found = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast()
    require(found.count == count, "the number of lines is wrong")
    for line in found {
      require(ExchangeProbe.record(Array(line)) != nil, "a line is skipped")
    }
    // The digest covers all lines before the last.
    if let end = found.last, String(decoding: end, as: UTF8.self).contains("sha256") {
      require(
        found.dropLast().elementsEqual(lines.dropLast()) { Array($0) == $1 },
        "a changed file is accepted")
    }
  }

  private func lineCount(of bytes: [UInt8]) -> Int? {
    guard FileManager.default.createFile(atPath: path.string, contents: Data(bytes)) else {
      preconditionFailure("\(path) cannot be written")
    }
    return ExchangeProbe.lineCount(ofFileAt: path)
  }

  private func hasLongNumber(_ text: [UInt8]) -> Bool {
    var count = 0
    for byte in text {
      count = (0x30...0x39).contains(byte) ? count + 1 : 0
      if count > Self.longestNumberByteCount || byte == UInt8(ascii: "e")
        || byte == UInt8(ascii: "E")
      {
        return true
      }
    }
    return false
  }

  /// A complete export with every kind of record and member.
  ///
  /// The digest covers exactly these bytes.
  private static let texts = [
    #"""
    {"record":"export","version":1,"id":"6f1c6f1c6f1c6f1c6f1c6f1c6f1c6f1c","source":"9a029a029a029a029a029a029a029a02","after":"16999999999999999","channels":["orders","größe"],"commitNumber":41,"highWater":"17000000000000009"}
    """#,
    #"""
    {"record":"channel","channel":"orders","keepsAcknowledged":true,"longestAge":"6048000000000","mostMessages":100,"mostBytes":9000,"removedThrough":"17000000000000000"}
    """#,
    #"""
    {"record":"consumer","channel":"orders","consumer":"billing","maximumAttempts":5}
    """#,
    #"""
    {"record":"message","timetoken":"17000000000000001","channel":"orders","due":"17000000000000005","expires":"17000000000000009","orderingKey":"k","headers":{"a":"\t\"\\","type":"text"},"payload":"42\n\u0000€","deliveries":[{"consumer":"billing","attempts":1,"leased":true,"failures":[{"attempt":1,"time":"17000000000000002","reason":"no"}]}]}
    """#,
    #"""
    {"record":"resumed","commitNumber":42,"highWater":"17000000000000019"}
    """#,
    #"""
    {"record":"message","timetoken":"17000000000000002","channel":"größe","priority":7,"payloadBase64":"/wA=","settledBy":["a","b"],"deadLetters":[{"consumer":"billing","attempts":3,"reason":"never","died":"17000000000000003"}]}
    """#,
    #"""
    {"record":"deduplication","channel":"orders","id":"id 1","timetoken":"17000000000000010","until":"17000000000000011"}
    """#,
    #"""
    {"record":"end","messages":2,"lines":7,"sha256":"1475970d5cf8d8c870e031138d8ce12d0f77df1f5bcb44d61e443a3ef606ad53"}
    """#,
  ]
}
