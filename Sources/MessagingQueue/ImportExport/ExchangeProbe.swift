internal import FileLayer
public import SystemPackage

/// Gives a fuzzer access to the readers of JSON lines.
@_spi(Testing)
public enum ExchangeProbe {
  /// A line of JSON without white space, each string in its canonical form; nil if the reader
  /// refuses it.
  public static func plain(_ line: [UInt8]) -> [UInt8]? {
    guard let line = try? JSONLine(line) else { return nil }
    return text(of: .object(line.members))
  }

  /// The line that an export writes for a line of an import, newline included; nil if the import
  /// refuses it.
  public static func record(_ line: [UInt8]) -> [UInt8]? { (try? ExchangeRecord(line))?.line }

  /// How many lines an importable file has; nil if the import refuses it.
  public static func lineCount(ofFileAt path: FilePath) -> Int? {
    guard let file = try? ExchangeFile(regularAt: path) else { return nil }
    // A time in 2026.
    let now = UnixTime(nanoseconds: 1_790_000_000_000_000_000)
    let checked = try? ImportCheck.run(file, EngineConfiguration(), now: now) { _ in }
    return checked?.lineCount
  }

  private static func text(of value: JSONValue) -> [UInt8] {
    switch value {
    case .null: return Array("null".utf8)
    case .boolean(let truth): return Array("\(truth)".utf8)
    case .number(let text): return Array(text.utf8)
    case .string(let string): return JSONObjectWriter.quoted(string)
    case .array(let values):
      return [UInt8(ascii: "[")] + values.map(text).joined(separator: [UInt8(ascii: ",")])
        + [UInt8(ascii: "]")]
    case .object(let members):
      let texts = members.map {
        JSONObjectWriter.quoted($0.name) + [UInt8(ascii: ":")] + text(of: $0.value)
      }
      return [UInt8(ascii: "{")] + texts.joined(separator: [UInt8(ascii: ",")])
        + [UInt8(ascii: "}")]
    }
  }
}
