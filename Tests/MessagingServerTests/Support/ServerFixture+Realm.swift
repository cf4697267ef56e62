import AccessControl
import ApplicationStore
import Foundation
import TestSupport
import VaultCrypto

@testable import MessagingServer

/// Users of the closed application, and programs that log in as one.
extension ServerFixture {
  /// Adds a user, or gives one another password and other roles, and waits until the server knows it.
  func put(user: String, _ text: String, roles: [String] = []) async throws {
    let (id, name) = (closed.record.id, try Name(user))
    let password = Password(SecretBytes(copying: Array(text.utf8)))
    let verifier = try store.keys.realm.verifier(for: password, user: name, of: id)
    try await store.put(
      user: name, verifier, roles: Set(try roles.map { try Name($0) }), of: id, replaces: true)
    try await eventually {
      server.gate.home?.directory.verifier(of: name, of: id)?.version == verifier.version
    }
  }

  func grant(_ rights: Rights, _ channel: String, _ holder: GrantHolder) async throws {
    let key = Grant.Key(.channel(try ChannelName(channel)), of: closed.record.id, holder: holder)
    try await store.put([try Grant(rights, on: key, minutes: 0, start: Date())])
  }

  /// Revokes a token of the closed application.
  func revoke(_ text: String) async throws {
    let signer = try await store.signer(of: closed.record.id)
    guard case .token(let token) = try signer.read(text.utf8) else { return }
    try await store.revoke(token.digest, of: closed.record.id, until: token.end)
  }

  /// Status, challenges, body and head of an answer to curl, which takes the password from its standard input.
  static func curl(
    _ url: String, user: String? = nil, headers: [String] = [], _ options: [String] = []
  ) async throws -> (status: Int, challenges: [String], text: String, head: String) {
    let configuration =
      (user.map { "user = \"\($0)\"\n" } ?? "")
      + headers.map { "header = \"\($0)\"\n" }.joined()
    let arguments = ["-sS", "-i", "-g", "-K", "-"] + options + [url]
    let program = try await PubNubClient.onBlockingThread {
      try Program.run("/usr/bin/curl", arguments, input: Array(configuration.utf8))
    }
    let parts = program.text.split(separator: "\r\n\r\n", maxSplits: 1)
    let lines = (parts.first ?? "").split(separator: "\r\n")
    let status = lines.first.flatMap { Int($0.split(separator: " ").dropFirst().first ?? "") }
    return (
      status ?? 0,
      lines.filter { $0.hasPrefix("WWW-Authenticate: ") }.map { String($0.dropFirst(18)) },
      parts.count > 1 ? String(parts[1]) : "", parts.first.map(String.init) ?? ""
    )
  }
}
