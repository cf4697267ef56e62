import Foundation
import TestSupport
import Testing

/// Sessions of a user who is not root, as in a systemd service.
///
/// Their session keyring has no link to the user's keyring.
@Suite(.enabled(if: OtherUser.isAvailable, OtherUser.skipReason))
struct SessionUserTests {
  let user = OtherUser()
  let home: TestHome

  init() throws {
    home = try TestHome.secured()
    try user.take(home)
  }

  private func unlock(_ id: String, _ time: String) throws -> Int32 {
    try user.run(home, "unlock", id, "--for", time, "--password-file", home.passwordFile).status
  }

  @Test func `a service uses the session that its user started elsewhere, until it ends`() throws {
    #expect(try user.run(home, "items", "messaging").status == 77)
    #expect(try unlock("messaging", "60s") == 0)
    #expect(try user.run(home, "items", "messaging").status == 0)
    #expect(try user.run(home, "queue", "receive", "c").text == "first\n")
    #expect(try user.run(home, "lock", "messaging").status == 0)
    #expect(try user.run(home, "items", "messaging").status == 77)
  }

  @Test func `the kernel ends a service's session after its duration`() throws {
    #expect(try unlock("messaging", "1s") == 0)
    try eventually { try user.run(home, "items", "messaging").status == 77 }
    // Root reads the kernel's list of keys.
    let rows = try ProcFile.text("/proc/keys").split(separator: "\n")
    let mine = rows.filter { $0.contains(" \(user.id) ") && $0.contains("datavault:") }
    #expect(mine.allSatisfy { $0.contains(" expd ") }, "\(mine)")
  }

  @Test func `root can neither use nor end another user's session by default`() throws {
    #expect(try unlock("messaging", "60s") == 0)
    #expect(try home.run("items", "messaging").status == 77)
    // Root does not see the user's keyring, and no process listens that does.
    #expect(try home.run("lock", "messaging").status == 69)
    #expect(try user.run(home, "items", "messaging").status == 0)
    #expect(try user.run(home, "lock", "messaging").status == 0)
  }

  @Test func `lock --all ends every session of the user`() throws {
    #expect(try user.run(home, "create", "v", "--new-password-file", home.passwordFile).status == 0)
    #expect(try unlock("v", "60s") == 0)
    #expect(try unlock("messaging", "60s") == 0)
    #expect(try user.run(home, "items", "v").status == 0)
    #expect(try user.run(home, "lock", "--all").status == 0)
    #expect(try user.run(home, "items", "v").status == 77)
    #expect(try user.run(home, "items", "messaging").status == 77)
  }

  @Test func `another user who possesses the keyring cannot read the session's key`() throws {
    #expect(try unlock("messaging", "60s") == 0)
    defer { _ = try? user.run(home, "lock", "messaging") }
    // The control is a key with the usual permissions, beside the session's key.
    let script = """
      keyctl link @u @s
      keyctl add user control control-payload @s > control
      for key in $(keyctl rlist @u); do
        case $(keyctl rdescribe $key) in *datavault:messaging:*) echo $key > session ;; esac
      done
      test -s session || exit 10
      keyctl pipe $(cat session) | wc -c > own
      as="setpriv --reuid=\(OtherUser().id) --clear-groups --inh-caps=-all --ambient-caps=-all"
      $as keyctl pipe $(cat control) || exit 11
      ! $as keyctl pipe $(cat session) || exit 12
      ! $as keyctl rdescribe $(cat session) || exit 13
      ! $as keyctl revoke $(cat session) || exit 14
      """
    let shell = try Program.run(
      "/usr/bin/env", user.switchingWrapper + Keyrings.fresh + ["sh", "-c", script],
      in: home.folder.url.path)
    #expect(shell.status == 0)
    #expect(shell.text.hasSuffix("control-payload"))
    #expect(try String(decoding: home.folder.bytes("own"), as: UTF8.self) == "41\n")
  }
}
