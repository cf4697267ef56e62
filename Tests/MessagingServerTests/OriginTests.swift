import Foundation
import TestSupport
import Testing

@Suite struct OriginTests {
  @Test func `each row of the page of origins names a test that there is, or why there is none`()
    throws
  {
    let page = try Repository.text("docs/reference/origins.md")
    let rows = page.split(separator: "\n").filter {
      $0.hasPrefix("| ") && !$0.hasPrefix("| it says")
    }
    #expect(!rows.isEmpty)
    let folder = URL(filePath: Repository.path("Tests"))
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
    let sources = try (files?.compactMap { $0 as? URL } ?? [])
      .filter { $0.pathExtension == "swift" }
      .map { try String(contentsOf: $0, encoding: .utf8) }.joined()
    for row in rows {
      if row.contains(/\| none: [^|]+ \|$/) { continue }
      let name = try #require(row.firstMatch(of: /\| `([^`]+)` \|$/), "\(row)").1
      let isThere = sources.contains("`\(name)`(")
      #expect(isThere, "\(name)")
    }
  }
}
