import Foundation

/// A file of the kernel, which reports no size.
///
/// `String(contentsOfFile:)` and `FileManager.contents(atPath:)` end at about 4 KiB of such a file.
public enum ProcFile {
  /// The whole text of a file.
  public static func text(_ path: String) throws -> String {
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    return String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
  }
}
