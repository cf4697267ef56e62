import TestSupport
import Testing

/// Pages of the guide to the client; their code is a target on which these tests depend.
@Suite struct DocumentationTests {
  @Test(arguments: [
    ("FromLibPusher", "migrate-from-libpusher"), ("FromKaazing", "migrate-from-kaazing"),
    ("FromPubNub", "migrate-from-pubnub-objective-c"), ("DisplayLogs", "display-client-logs"),
  ])
  func `the code in a page is compiled`(example: String, page: String) throws {
    let code = try Repository.text("Tests/Support/ClientExamples/\(example).swift")
    let text = try Repository.text("docs/how-to/\(page).md")
    #expect(text.contains("```swift\n\(code)```\n"))
    #expect(text.ranges(of: "```swift\n").count == 1)
  }

  @Test func `the messaging code in the page on SUPDataVault is compiled`() throws {
    let code = try Repository.text("Tests/Support/ClientExamples/FromSUPDataVault.swift")
    let text = try Repository.text("docs/how-to/migrate-from-supdatavault.md")
    #expect(text.contains("```swift\n\(code)```\n"))
  }
}
