import Foundation
import Glibc
import TestSupport
import Testing

/// The files and the output that a crashed `datavault` leaves.
@Suite struct CrashTests {
  @Test(arguments: [SIGSEGV, SIGABRT])
  func `a crash writes no core file, and no memory to standard error`(signal: Int32) throws {
    let home = try TestHome.secured()
    let place = home.folder.path("place")
    try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    let child = try home.start(
      "queue", "receive", "c", "--follow",
      descriptors: [
        1: .writing(home.folder.path("output")), 2: .writing(home.folder.path("errors")),
      ],
      through: ["env", "-C", place, "prlimit", "--core=1000000000:1000000000"])
    try eventually { try !home.folder.bytes("output").isEmpty }
    #expect(try home.folder.bytes("output") == Array("first\n".utf8))
    let limits = try String(contentsOfFile: "/proc/\(child.id)/limits", encoding: .utf8)
    let core = limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }
    #expect(core?.split(separator: " ").dropFirst(4).first == "1", "\(limits)")
    kill(child.id, signal)
    // Ends the wait if the process survives the signal.
    let last = DispatchWorkItem { kill(child.id, SIGKILL) }
    DispatchQueue.global().asyncAfter(deadline: .now() + 60, execute: last)
    #expect(child.wait() == 128 + signal)
    last.cancel()
    #expect(try FileManager.default.contentsOfDirectory(atPath: place) == [])
    #expect(try home.folder.bytes("errors") == [])
  }
}
