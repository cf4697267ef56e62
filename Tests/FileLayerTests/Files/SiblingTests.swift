import FileLayer
import SystemPackage
import Testing

@Suite struct SiblingTests {
  @Test(
    arguments: [
      ("/a/b.c", "/a", "/a/.b.c.new"), ("/a", "/", "/.a.new"), ("a/ä", "a", "a/.ä.new"),
      ("../a", "..", "../.a.new"), ("a", ".", ".a.new"), ("/", "/", "/..new"), ("", ".", "..new"),
    ] as [(FilePath, FilePath, FilePath)])
  func `a path has a directory and a temporary sibling in it`(
    path: FilePath, directory: FilePath, sibling: FilePath
  ) {
    #expect(path.containingDirectory == directory)
    #expect(path.temporarySibling == sibling)
  }
}
