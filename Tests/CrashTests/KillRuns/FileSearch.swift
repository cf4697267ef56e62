import Foundation
import Glibc
import TestSupport

/// Searches files for texts that must not be there.
struct FileSearch {
  let texts: [[UInt8]]

  /// The files beneath `folder` that contain one of the texts, each with that text.
  func hits(in folder: URL) throws -> [String] {
    var hits: [String] = []
    for file in try Self.files(in: folder) {
      let content = try Data(contentsOf: file)
      for text in texts where Self.contains(content, text) {
        hits.append("\(file.lastPathComponent): \(String(decoding: text, as: UTF8.self))")
      }
    }
    return hits
  }

  /// The regular files beneath `folder`.
  static func files(in folder: URL) throws -> [URL] {
    let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
    return paths.map { folder.appendingPathComponent($0) }.filter { !$0.hasDirectoryPath }
      .filter {
        (try? FileManager.default.attributesOfItem(atPath: $0.path)[.type]) as? FileAttributeType
          == .typeRegular
      }
  }

  private static func contains(_ content: Data, _ text: [UInt8]) -> Bool {
    content.withUnsafeBytes { content in
      guard var place = content.baseAddress else { return false }
      let end = place + content.count
      while end - place >= text.count,
        let next = memchr(place, Int32(text[0]), end - place - text.count + 1)
      {
        if memcmp(next, text, text.count) == 0 { return true }
        place = UnsafeRawPointer(next) + 1
      }
      return false
    }
  }
}
