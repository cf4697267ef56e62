package import ArgumentParser
internal import DataVault
internal import Glibc
internal import MessagingQueue
internal import SystemPackage
internal import VaultedDatabase

/// What a shell offers for an argument of a half-typed command line.
///
/// A shell asks for it at each press of the tab key. So it asks no question, changes no file, ends
/// within a second, and offers nothing where anything is wrong: the command itself reports the error.
package enum Completion {
  /// The vaults of the home.
  package static let vaults = CompletionKind.custom { words, _, _ in
    await offered(words) { home in try await Vault.list(in: home.store).map(\.rawValue) }
  }

  /// The items of the vault that the line names, if a session opens it.
  package static let items = CompletionKind.custom { words, index, _ in
    await offered(words) { home in
      guard index > 0, index <= words.count,
        let vault = try await openVault(VaultID(words[index - 1]), in: home)
      else { return [] }
      return try await vault.itemNames().map(\.name)
    }
  }

  /// The channels of the home's queue, if a session opens its vault.
  package static let channels = CompletionKind.custom { words, _, _ in
    await offered(words) { home in
      guard let vault = try await openVault(.messaging, in: home) else { return [] }
      return try await home.channelNames(vault: vault)
    }
  }

  /// Whether these are the arguments by which a script of `--generate-completion-script` asks.
  static func isRequested(by arguments: [String]) -> Bool { arguments.first == "---completion" }

  /// Ends the process when the time for a completion has passed.
  static func limitTime() {
    signal(SIGALRM) { _ in _exit(0) }
    alarm(1)
  }

  /// The names that a shell takes as they are.
  ///
  /// bash expands the list that it is given. A name with `$(...)` in it would run a command there, and
  /// the author of an imported file chose the names of its channels.
  static func safeNames(_ names: [String]) -> [String] {
    names.filter { name in
      !name.isEmpty && !name.hasPrefix("-")
        && name.utf8.allSatisfy { byte in
          switch byte {
          case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "-"), UInt8(ascii: "/"), UInt8(ascii: "@"), UInt8(ascii: "+"),
            UInt8(ascii: ","), UInt8(ascii: "%"):
            true
          default: false
          }
        }
    }
  }

  private static func offered(
    _ words: [String], _ names: (DataVaultHome) async throws -> [String]
  ) async -> [String] {
    guard let home = try? home(of: words) else { return [] }
    return safeNames((try? await names(home)) ?? [])
  }

  /// The home that the words of a line name; nil for vaults in a Secret Service, which could ask.
  private static func home(of words: [String]) throws -> DataVaultHome? {
    func value(of option: String) -> String? {
      for (index, word) in words.enumerated() {
        if word == option { return words.dropFirst(index + 1).first }
        if word.hasPrefix("\(option)=") { return String(word.dropFirst(option.count + 1)) }
      }
      return nil
    }
    let store = value(of: "--store")
    guard store == nil || store == StoreChoice.file.rawValue else { return nil }
    var options = HomeOptions()
    options.path = value(of: "--home").map(expandingTilde)
    options.store = .file
    return try options.home()
  }

  /// The shell has not expanded the words of a line that is still being typed.
  private static func expandingTilde(_ path: String) -> String {
    guard path == "~" || path.hasPrefix("~/"), let home = Environment["HOME"] else { return path }
    return home + path.dropFirst()
  }

  private static func openVault(_ id: VaultID, in home: DataVaultHome) async throws -> Vault? {
    let vault = try await Vault.get(id, in: home.store)
    return try await vault.unlockWithSession(endsStaleSession: false) ? vault : nil
  }
}
