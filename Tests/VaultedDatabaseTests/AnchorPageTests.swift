import DataVault
import Testing
import VaultedDatabase

@Suite struct AnchorPageTests {
  private static let old = anchor(1, at: 10)
  private static let new = anchor(2, at: 20)

  private static func anchor(_ byte: UInt8, at commitNumber: Int64) -> DatabaseAnchor {
    DatabaseAnchor(id: Array(repeating: byte, count: 16), commitNumber: commitNumber)
  }

  @Test func `a database passes with the anchor of its vault, and with that alone`() {
    let page = AnchorPage(commitNumber: 25, anchors: [Self.old, Self.new])
    #expect(AnchorPage.page(page, holds: nil))
    #expect(AnchorPage.page(nil, holds: nil))
    #expect(AnchorPage.page(page, holds: Self.new))
    // The vault is the older of the two: a crash came between the steps.
    #expect(AnchorPage.page(page, holds: Self.old))
    #expect(!AnchorPage.page(nil, holds: Self.old))
    // An older copy; one that went its own way since, however far.
    #expect(!AnchorPage.page(AnchorPage(commitNumber: 15, anchors: [Self.old]), holds: Self.new))
    #expect(!AnchorPage.page(AnchorPage(commitNumber: 99, anchors: [Self.old]), holds: Self.new))
    // The id alone is not enough, nor is the number.
    #expect(!AnchorPage.page(page, holds: Self.anchor(2, at: 21)))
    #expect(!AnchorPage.page(page, holds: Self.anchor(3, at: 20)))
    #expect(!AnchorPage.page(AnchorPage(commitNumber: 19, anchors: [Self.new]), holds: Self.new))
  }
}
