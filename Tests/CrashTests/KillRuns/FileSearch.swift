import Foundation
import TestSupport

/// Searches files for texts that must not be there.
struct FileSearch {
  let texts: [[UInt8]]

  /// The files beneath `folder` that contain one of the texts, each with that text.
  func hits(in folder: URL) throws -> [String] {
    var hits: [String] = []
    for file in try Self.files(in: folder) {
      let content = try Data(contentsOf: file)
      for text in texts where content.range(of: Data(text)) != nil {
        hits.append("\(file.lastPathComponent): \(String(decoding: text, as: UTF8.self))")
      }
    }
    return hits
  }

  /// The regular files beneath `folder`.
  static func files(in folder: URL) throws -> [URL] {
    try FileManager.default.subpathsOfDirectory(atPath: folder.path)
      .map { folder.appendingPathComponent($0) }.filter {
        (try? FileManager.default.attributesOfItem(atPath: $0.path)[.type]) as? FileAttributeType
          == .typeRegular
      }
  }
}
