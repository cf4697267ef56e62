import Foundation
import Glibc
import TestSupport
import Testing

/// The question before a command deletes.
@Suite struct ConfirmationTests {
  private let bench: TerminalFixture

  init() throws { bench = try TerminalFixture() }

  @Test(arguments: [("n", 77), ("y", 0)] as [(String, Int32)])
  func `a command that deletes asks at a terminal`(answer: String, status: Int32) throws {
    let user = try TerminalUser()
    let child = try bench.home.start(
      "queue", "purge", "c",
      descriptors: [0: .terminal(user.terminal), 2: .writing(bench.files.path("errors"))])
    user.press(answer + "\n")
    #expect(child.wait() == status)
    #expect(bench.errors.contains("delete the messages of channel 'c'? [y/N]"))
    let left = try bench.home.queue("history", "c").text
    #expect(left == (status == 0 ? "" : "first\n"))
  }

  /// Every command that asks, with the beginning of its question.
  private static let questions = [
    ("delete v", "delete vault 'v' and its items"), ("unset v x", "delete item 'x' of vault 'v'"),
    ("slots remove v paper", "remove slot 'paper' of vault 'v'"),
    (
      "rotate messaging --drop paper",
      "create new keys for vault 'messaging', and remove its slots 'paper'"
    ),
    ("queue cancel c 17633000000000000", "delete 1 message of channel 'c'"),
    ("queue purge c", "delete the messages of channel 'c'"),
    ("queue consumers remove c default", "remove consumer 'default' of channel 'c'"),
    ("queue dead-letters remove c --all", "delete all dead letters of channel 'c'"),
    ("queue accept-rollback", "go on without the messages that this copy of the queue lacks"),
  ]

  @Test(arguments: questions)
  func `each command that destroys asks before it does anything`(
    command: String, question: String
  ) throws {
    let user = try TerminalUser()
    let before = try bench.home.contents()
    let child = try bench.start(command.split(separator: " ").map(String.init), at: user)
    user.press("n\n")
    #expect(child.wait() == 77)
    #expect(bench.errors.contains("\(question)"), "\(bench.errors)")
    #expect(bench.errors.contains("not confirmed: nothing was changed"))
    #expect(try bench.home.contents() == before)
  }

  @Test func `exactly the commands that ask have --yes`() throws {
    let page = try Repository.text("docs/reference/command-line.md")
    let asking = page.matches(
      of: /<!-- generated: ([a-z -]+) -->\n```sh\n([^`]*)```(?s:(.*?))<!-- end -->/
    )
    .filter { $0.output.3.contains("- `--yes`") || $0.output.2.contains("[--yes]") }
    .map { String($0.output.1) }
    let tested = Self.questions.map(\.0)
    #expect(asking.count == tested.count, "\(asking)")
    for name in asking {
      #expect(tested.contains { $0.hasPrefix(name + " ") || $0 == name }, "\(name)")
    }
  }
}
