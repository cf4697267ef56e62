import FileLayer
import Foundation
import Glibc
import SystemPackage
import TestSupport
import Testing

/// A foreign file in the place of a file that this process wants to open.
private enum ForeignFile: String, CaseIterable, CustomTestStringConvertible {
  case symbolicLink, hardLink, pipe, directory, otherMode, otherOwner

  var testDescription: String { rawValue }

  /// Creates it beside the file "victim".
  func put(_ name: String, in directory: ScratchFolder) throws {
    let path = directory(name).string
    let victim = directory("victim").string
    try directory.put("victim", at: "victim")
    chmod(victim, 0o600)
    switch self {
    case .symbolicLink: try #require(symlink(victim, path) == 0)
    case .hardLink: try #require(link(victim, path) == 0)
    case .pipe: try #require(mkfifo(path, 0o600) == 0)
    case .directory: try #require(mkdir(path, 0o700) == 0)
    case .otherMode, .otherOwner:
      try directory.put("", at: name)
      chmod(path, self == .otherMode ? 0o640 : 0o600)
      if self == .otherOwner { try #require(chown(path, 65534, 65534) == 0) }
    }
  }

  /// The cases that this test process can create.
  static var possible: [ForeignFile] { allCases.filter { $0 != .otherOwner || geteuid() == 0 } }

  var refusal: String {
    switch self {
    case .symbolicLink: "it is a symbolic link"
    case .hardLink: "it has more than one name (hard links)"
    case .pipe: "it is not a regular file"
    case .directory: "it is a directory"
    case .otherMode: "other users can read or write it"
    case .otherOwner: "it belongs to user 65534"
    }
  }
}

@Suite struct OwnFileTests {
  let directory = ScratchFolder()
  let files = LinuxFileSystem()

  @Test(arguments: ForeignFile.possible)
  private func `a file that another user could have made is refused`(
    _ foreignFile: ForeignFile
  ) throws {
    try foreignFile.put("file", in: directory)
    let error = #expect(throws: FileError.self) {
      try OwnFile.open(directory("file"), .contents, for: .write).close()
    }
    #expect(error?.refusal == foreignFile.refusal)
    #expect(error?.hint != nil)
    #expect(directory.contents(of: "victim") == "victim")
  }

  @Test func `a file of this user alone is opened`() throws {
    try OwnFile.create(directory("file"), permissions: .ownerReadWrite).close()
    let file = try OwnFile.open(directory("file"), .contents, for: .write)
    try file.writeAll(Array("more".utf8))
    try file.close()
    #expect(directory.contents(of: "file") == "more")
  }

  @Test(arguments: ForeignFile.possible.filter { $0 != .otherMode })
  private func `a lock on a file that another user could have made is refused`(
    _ foreignFile: ForeignFile
  ) throws {
    try foreignFile.put("lock", in: directory)
    let error = #expect(throws: FileError.self) {
      try files.lock(directory("lock"), wait: false)?.release()
    }
    #expect(error?.refusal == foreignFile.refusal)
    #expect(directory.contents(of: "victim") == "victim")
  }

  @Test func `a lock file that a kill left with two names is accepted`() throws {
    try directory.put("", at: "lock")
    #expect(link(directory("lock").string, directory(".lock.datavault.new").string) == 0)
    #expect(try files.lock(directory("lock"), wait: false) != nil)
  }

  @Test(.enabled(if: geteuid() == 0))
  func `root accepts a lock file of the directory's owner or of the given owner`() throws {
    let owner = FileOwner(userID: 65534, groupID: 65534)
    try directory.put("", at: "lock")
    chown(directory("lock").string, owner.userID, owner.groupID)
    #expect(throws: FileError.self) { try files.lock(directory("lock"), wait: false) }
    #expect(try files.lock(directory("lock"), wait: false, owner: owner) != nil)
    chown(directory.path.string, owner.userID, owner.groupID)
    #expect(try files.lock(directory("lock"), wait: false) != nil)
    // The owner could read the contents, so root refuses the file for contents.
    chmod(directory("lock").string, 0o600)
    let error = #expect(throws: FileError.self) {
      try OwnFile.open(directory("lock"), .contents, for: .write).close()
    }
    #expect(error?.refusal == "it belongs to user 65534")
  }

  @Test func `only OwnFile and the terminal code create or open files for writing`() throws {
    let sources = URL(filePath: Repository.path("Sources"))
    let signs = [
      "O_CREAT", "O_TRUNC", "options: .create", "options: [.create", ".truncate]", "createFile(",
      "FileHandle(forWriting", "FileHandle(forUpdating", "fopen(", "creat(", "mkstemp", "mkfifo(",
      "O_RDWR", "O_WRONLY",
    ]
    var found: [String] = []
    let names = try #require(FileManager.default.enumerator(atPath: sources.path))
    for case let name as String in names where name.hasSuffix(".swift") {
      let text = try String(contentsOf: sources.appending(path: name), encoding: .utf8)
      if signs.contains(where: text.contains) { found.append(name) }
    }
    // The terminal and /dev/null are exempt.
    #expect(
      found.sorted() == [
        "CommandInterface/Input/Environment.swift", "CommandInterface/Input/Terminal.swift",
        "FileLayer/OwnFile.swift",
      ])
  }
}
