import DataVault
import Testing
import VaultedDatabase

@Suite struct AnchorHistoryTests {
  private static let old = anchor(1, at: 10)
  private static let new = anchor(2, at: 20)

  private static func anchor(_ byte: UInt8, at commitNumber: Int64) -> DatabaseAnchor {
    DatabaseAnchor(id: Array(repeating: byte, count: 16), commitNumber: commitNumber)
  }

  @Test func `a database passes only with its vault's anchor`() {
    let page = AnchorHistory(commitNumber: 25, anchors: [Self.old, Self.new])
    #expect(AnchorHistory.page(page, holds: nil))
    #expect(AnchorHistory.page(nil, holds: nil))
    #expect(AnchorHistory.page(page, holds: Self.new))
    // The vault has the older anchor: a crash came between the steps.
    #expect(AnchorHistory.page(page, holds: Self.old))
    #expect(!AnchorHistory.page(nil, holds: Self.old))
    // An older copy, and a copy that has had commits of its own since.
    #expect(
      !AnchorHistory.page(AnchorHistory(commitNumber: 15, anchors: [Self.old]), holds: Self.new))
    #expect(
      !AnchorHistory.page(AnchorHistory(commitNumber: 99, anchors: [Self.old]), holds: Self.new))
    // Neither the id alone nor the number alone is enough.
    #expect(!AnchorHistory.page(page, holds: Self.anchor(2, at: 21)))
    #expect(!AnchorHistory.page(page, holds: Self.anchor(3, at: 20)))
    #expect(
      !AnchorHistory.page(AnchorHistory(commitNumber: 19, anchors: [Self.new]), holds: Self.new))
  }
}
