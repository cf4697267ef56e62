internal import FileLayer
internal import StrictJSON
public import SystemPackage

/// Gives a fuzzer access to the readers of JSON lines.
@_spi(Testing)
public enum ExchangeProbe {
  /// A line of JSON without white space, each string in its canonical form; nil if the reader
  /// refuses it.
  public static func plain(_ line: [UInt8]) -> [UInt8]? {
    guard let line = try? JSONLine(line) else { return nil }
    return Array(JSONValue.object(line.members).text.utf8)
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
}
