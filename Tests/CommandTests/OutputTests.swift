import Foundation
import Glibc
import TestSupport
import Testing

@Suite struct OutputTests {
  private let home: TestHome

  init() throws { home = try TestHome.secured() }

  /// Makes a pipe that no other child process inherits.
  private static func makePipe() throws -> [Int32] {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return ends
  }

  /// Runs `queue receive` with this descriptor as standard output.
  private func receive(into output: Child.Descriptor) throws -> Program {
    let files = ScratchFolder()
    let child = try home.start(
      "queue", "receive", "c", descriptors: [1: output, 2: .writing(files.path("errors"))])
    return Program(status: child.wait(), output: [], errors: files.contents(of: "errors") ?? "")
  }

  @Test func `receive into a closed pipe ends with 74 and releases the message`() throws {
    // The attempt does not count: the message becomes no dead letter.
    try home.queue("consumers", "add", "c", "default", "--attempts", "1").expect(0)
    let ends = try Self.makePipe()
    close(ends[0])
    try receive(into: .inherited(ends[1])).expect(74, says: "closed the pipe")
    close(ends[1])
    #expect(try home.queue("receive", "c").text == "first\n")
  }

  @Test func `receive to a full disk ends with 74 and loses no message`() throws {
    try receive(into: .writing("/dev/full")).expect(74)
    #expect(try home.queue("receive", "c").text == "first\n")
  }

  @Test
  func `receive with closed standard output ends with 74 and prints nothing into the database`()
    throws
  {
    // No other file must have received the descriptor number 1.
    try receive(into: .closed).expect(74, says: "bad file descriptor")
    #expect(try home.queue("receive", "c").text == "first\n")
  }

  @Test(arguments: [["--help"], ["--version"], ["help", "queue", "publish"]])
  func `help and version end with 74 if standard output cannot be written`(arguments: [String])
    throws
  {
    let child = try Child(arguments, descriptors: [1: .writing("/dev/full")])
    #expect(child.wait() == 74)
  }

  @Test func `set waits for slow standard input that does not block`() throws {
    let ends = try Self.makePipe()
    _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
    let child = try home.start("set", "messaging", "slow", descriptors: [0: .inherited(ends[0])])
    close(ends[0])
    // Nothing shows that the command has found no input yet.
    usleep(1_000_000)
    #expect(write(ends[1], "late", 4) == 4)
    close(ends[1])
    #expect(child.wait() == 0)
    #expect(try home.unlocked("get", "messaging", "slow").text == "late")
  }

  @Test func `receive keeps the messages that a closing pipe did not accept`() throws {
    let line = String(repeating: "x", count: 999)
    let input = (1...500).map { _ in line + "\n" }.joined()
    #expect(try home.queue("publish", "c", input: input).status == 0)
    let ends = try Self.makePipe()
    let child = try home.start("queue", "receive", "c", descriptors: [1: .inherited(ends[1])])
    close(ends[1])
    var first: UInt8 = 0
    #expect(read(ends[0], &first, 1) == 1)
    close(ends[0])
    #expect(child.wait() == 74)
    let rest = try home.queue("receive", "c").text.split(separator: "\n")
    // The pipe accepted some messages. Messages that it did not accept completely are still in the
    // queue.
    #expect((1...500).contains(rest.count))
    #expect(rest.allSatisfy { $0 == line })
  }

  @Test func `publish reports each commit while its input is still open`() throws {
    let publisher = try Publisher(home, ["p", "--password-file", home.passwordFile])
    for count in 1...3 {
      publisher.publish("line")
      let report = try publisher.report(count)
      #expect(report.hasPrefix(#"{"published":\#(count),"lastTimetoken":"1"#))
    }
  }

  @Test func `secure ends with 75 and changes nothing while another process has the queue open`()
    throws
  {
    let home = try TestHome.unsecured()
    let publisher = try Publisher(home, ["c"])
    publisher.publish("second")
    try publisher.report(1)
    try home.run("secure", "--new-password-file", home.passwordFile).expect(75)
    #expect(publisher.finish() == 0)
    #expect(try home.run("queue", "receive", "c").text == "first\nsecond\n")
  }
}
