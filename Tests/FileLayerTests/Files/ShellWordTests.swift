import FileLayer
import SystemPackage
import TestSupport
import Testing

struct ShellWordTests {
  @Test(arguments: [
    "/srv/datavault/.x.new", "/my home; touch x", "/$(id)`id`", "/it's", "/a'b'\"c\\", "/über",
    "/a\nb",
  ])
  func `the shell reads a path in a hint as one word`(path: String) throws {
    let word = FilePath(path).shellWord
    let output = try Program.run("/bin/sh", ["-c", "printf %s \(word)"])
    #expect(output.text == path)
    #expect((word == path) == !path.contains { !"/.abcdefghijklmnopqrstuvwxyz".contains($0) })
  }
}
