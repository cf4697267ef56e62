import Foundation
import Glibc
import Testing

/// An export that is really killed.
@Suite struct DatabaseKillTests {
  @Test(arguments: ["sealed", "sqlcipher4", "plain"])
  func `killed in the midst, an export leaves no new file, and the next one works`(
    format: String
  ) throws {
    let bench = try ExchangeFixture(rowCount: 20_000)
    let (source, before) = (try bench.folder.bytes("sealed"), bench.names)
    let dump = try bench.folder.shell("plain", ".sha3sum")
    let side = bench.folder.path(".new.new")
    var killCount = 0
    for part in [0, 1, 3, 6] {
      let child = try Child(
        bench.exportArguments("new", format), environment: [:],
        descriptors: [
          0: .reading("/dev/null"), 1: .writing("/dev/null"), 2: .writing("/dev/null"),
        ])
      Self.wait(for: side, toReach: source.count * part / 8, of: child.id)
      kill(child.id, SIGKILL)
      killCount += child.wait() == 128 + SIGKILL ? 1 : 0
      #expect(try bench.folder.bytes("sealed") == source)
      let left = bench.names.filter { !before.contains($0) }
      if left == ["new"] {  // it was quicker than we
        try FileManager.default.removeItem(atPath: bench.folder.path("new"))
        continue
      }
      #expect(left == [".new.new"])
      if format != "plain" {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: side))
        #expect(bytes.range(of: Data(ExchangeFixture.canary)) == nil)
        #expect(bytes.range(of: Data("CREATE TABLE".utf8)) == nil)
      }
    }
    #expect(killCount >= 2)

    let again = try bench.export("new", format)
    #expect(again.status == 0, "\(again.errors)")
    #expect(bench.names == (before + ["new"]).sorted())
    if format == "plain" { #expect(try bench.folder.shell("new", ".sha3sum") == dump) }
  }

  /// Waits until a file has so many bytes or the process has ended.
  private static func wait(for path: String, toReach byteCount: Int, of id: pid_t) {
    var status = stat()
    var exit = siginfo_t()
    while stat(path, &status) != 0 || status.st_size < byteCount {
      let options = WEXITED | WNOHANG | WNOWAIT
      if waitid(P_PID, id_t(id), &exit, options) != 0 || exit.si_signo == SIGCHLD { return }
      usleep(200)
    }
  }
}
