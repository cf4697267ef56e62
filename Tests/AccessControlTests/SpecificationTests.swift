import AccessControl
import TestSupport
import Testing

@Suite struct SpecificationTests {
  @Test func `the page has every operation with the right that it needs, and no other`() throws {
    let page = try Repository.text("docs/reference/access.md")
    let section = try #require(page.split(separator: "\n## ").first { $0.hasPrefix("Operations") })
    let rows = section.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst()
      .map { $0.split(separator: "|").map { $0.drop(while: \.isWhitespace) } }
      .map { $0.map { String($0.reversed().drop(while: \.isWhitespace).reversed()) } }
    let documented = Dictionary(uniqueKeysWithValues: rows.map { ($0[0], $0[1]) })
    let declared = Dictionary(
      uniqueKeysWithValues: AccessOperation.allCases.map {
        ($0.rawValue, $0.right?.description ?? "the secret key")
      })
    #expect(documented == declared)
  }

  @Test func `the page has the bits of the rights`() throws {
    let page = try Repository.text("docs/reference/access.md")
    let lines = page.split(separator: "\n")
    let bits = try #require(lines.first { $0.hasPrefix("| bit |") }).split(separator: "|")
    let names = try #require(lines.first { $0.hasPrefix("| right |") }).split(separator: "|")
    let pairs = zip(bits, names).dropFirst().map {
      (UInt16($0.filter(\.isNumber)), $1.filter(\.isLetter))
    }
    #expect(pairs.count == 9)
    for (bit, name) in pairs {
      #expect(Rights(rawValue: try #require(bit)).description == name)
    }
  }
}
