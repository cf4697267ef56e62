import DataVault
import Foundation
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@Suite struct SecretSourceTests {
  private let folder = ScratchFolder()

  /// The text of a secret, or the code of its error.
  private func outcome(of source: SecretSource) async throws -> String {
    do throws(VaultError) {
      let secret = try await source.read()
      return secret.text()
    } catch {
      return error.code.description
    }
  }

  /// A source of each kind that holds these bytes.
  private func sources(of contents: String) throws -> [SecretSource] {
    let file = FilePath(try folder.file("secret", Array(contents.utf8)))
    return [.file(file), .command(["cat", file.string])]
  }

  @Test(arguments: [
    ("secret", "secret"), ("secret\n", "secret"), ("secret\n\n", "secret\n"),
    ("secret\r\n", "secret\r"), (" secret ", " secret "), ("\nsecret", "\nsecret"),
    ("null\0byte", "null\0byte"), ("", "secretUnavailable"), ("\n", "secretUnavailable"),
  ])
  func `every source drops one final newline, keeps all other bytes and refuses an empty secret`(
    contents: String, expected: String
  ) async throws {
    for source in try sources(of: contents) {
      #expect(try await outcome(of: source) == expected, "\(source)")
    }
    let handle = try FileHandle(forReadingFrom: folder.url.appendingPathComponent("secret"))
    #expect(try await outcome(of: .descriptor(handle.fileDescriptor)) == expected)
  }

  @Test func `a secret has at most 64 KiB without its final newline`() async throws {
    let longest = String(repeating: "p", count: SecretSource.maximumByteCount)
    for (contents, isAccepted) in [
      (longest, true), (longest + "\n", true), (longest + "\n\n", false), (longest + "p", false),
    ] {
      for source in try sources(of: contents) {
        #expect(
          try await outcome(of: source) == (isAccepted ? longest : "secretTooLarge"), "\(source)")
      }
    }
  }

  @Test func `a missing source is secretUnavailable, and a directory is unreadable`() async throws {
    let cases: [(SecretSource, String)] = [
      (.file(folder("missing")), "secretUnavailable"), (.file(folder.path), "unreadable"),
      (.descriptor(-1), "unreadable"), (.credential("a/b"), "invalidArgument"),
      (.credential(".."), "invalidArgument"), (.command([]), "invalidArgument"),
      (.command(["cat", "a\0b"]), "invalidArgument"),
      (.command([folder.path("missing")]), "secretUnavailable"),
    ]
    for (source, expected) in cases {
      #expect(try await outcome(of: source) == expected, "\(source)")
    }
  }

  @Test func `a secret in a file that other users can read is refused`() async throws {
    let file = try folder.file("loose", Array("secret".utf8))
    chmod(file, 0o640)
    #expect(try await outcome(of: .file(FilePath(file))) == "permissionsTooOpen")
  }

  @Test(arguments: ["printf secret; exit 3", "exit 1", "printf secret; kill -9 $$"])
  func `a command that fails gives no secret, even with output`(script: String) async throws {
    #expect(try await outcome(of: .command(["sh", "-c", script])) == "secretUnavailable")
  }

  @Test func `a command gets its arguments as they are, and nothing on standard input`()
    async throws
  {
    let command = ["sh", "-c", #"cat; printf '%s|' "$@""#, "sh", "a b", "$HOME", "*"]
    #expect(try await outcome(of: .command(command)) == "a b|$HOME|*|")
  }

  @Test func `a command without end is killed with the programs that it started`() async throws {
    let file = folder.path("process")
    for script in [
      "echo $$ > \(file); sleep 1000 & wait", "echo $$ > \(file); exec >&-; exec sleep 1000",
      "echo $$ > \(file); exec cat /dev/zero",
    ] {
      let limit = Duration.milliseconds(script.contains("zero") ? 1_000_000 : 300)
      let expected = script.contains("zero") ? "secretTooLarge" : "secretUnavailable"
      #expect(
        try await outcome(of: .command(["sh", "-c", script], timeLimit: limit)) == expected)
      // A slow machine can end the shell before it has written its process.
      guard let text = folder.contents(of: "process"),
        let process = pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines))
      else { continue }
      #expect(kill(process, 0) == -1 && errno == ESRCH)
    }
  }

  @Test func `a command that leaves its process group is killed too`() async throws {
    let file = folder.path("process")
    let script = """
      import os, sys, time
      open(sys.argv[1], "w").write(str(os.getpid()))
      os.setpgid(0, os.getpgid(os.getppid()))
      time.sleep(1000)
      """
    let command = SecretSource.command(
      ["/usr/bin/python3", "-c", script, file], timeLimit: .seconds(2))
    #expect(try await outcome(of: command) == "secretUnavailable")
    guard let process = folder.contents(of: "process").flatMap({ pid_t($0) }) else { return }
    #expect(kill(process, 0) == -1 && errno == ESRCH)
  }

  @Test func `an error of a command names its program and no argument`() async throws {
    let source = SecretSource.command(["sh", "-c", "echo topsecret; exit 1"])
    do throws(VaultError) {
      _ = try await source.read()
      Issue.record("the command succeeded")
    } catch {
      #expect(error.message.contains("'sh'") && error.message.contains("exit code 1"))
      #expect(!error.description.contains("topsecret"))
    }
  }
}
