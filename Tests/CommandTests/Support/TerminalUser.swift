import Foundation
import Glibc
import Testing

/// A pseudo-terminal and a user who types when asked.
final class TerminalUser {
  let side: Int32
  let terminal: String
  private(set) var seen = ""

  init() throws {
    // Replaces grantpt(3), unlockpt(3) and ptsname(3), which the Glibc module lacks.
    let (unlock, getNumber) = (UInt(0x4004_5431), UInt(0x8004_5430))
    side = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var (locked, number): (Int32, Int32) = (0, 0)
    try #require(side >= 0 && ioctl(side, unlock, &locked) == 0)
    try #require(ioctl(side, getNumber, &number) == 0)
    terminal = "/dev/pts/\(number)"
  }

  /// Waits for the question, then types.
  func answer(_ question: String, with line: String) throws {
    try waitFor(question)
    press(line + "\n")
  }

  /// Waits for the question.
  func waitFor(_ question: String) throws {
    let deadline = Date().addingTimeInterval(120)
    let before = seen.count
    while !seen.dropFirst(before).contains(question) {
      try #require(Date() < deadline, "no question; seen: \(seen)")
      readOutput(milliseconds: 200)
    }
    try #require(!echoes, "the terminal shows what is typed")
  }

  /// Types without waiting for a question.
  func press(_ key: String) { _ = write(side, key, key.utf8.count) }

  var echoes: Bool {
    var settings = termios()
    return tcgetattr(side, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
  }

  /// Reads the terminal's new output.
  func readOutput(milliseconds: Int32 = 0) {
    var entry = pollfd(fd: side, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, milliseconds) > 0 else { return }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(side, &bytes, bytes.count)
    if count > 0 { seen += String(decoding: bytes[..<count], as: UTF8.self) }
  }

  deinit { close(side) }
}
