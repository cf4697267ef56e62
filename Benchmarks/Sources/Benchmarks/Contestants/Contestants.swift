import Foundation
import SystemPackage

/// All contestants: our sealed SQLite, the plain one, and the peers that this machine has.
final class Contestants {
  /// An encrypting peer, with its own SQLite on plain files.
  struct Peer {
    let name: String
    let sealed: any Contestant
    let plain: any Contestant
  }

  let ours: SQLiteContestant
  let plain: SQLiteContestant
  let peers: [Peer]

  static let sqlCipher = "SQLCipher"

  /// - Parameter pythons: the interpreters, by the module of their peer.
  init(folder: FilePath, pythons: [String: String], script: String) throws {
    func made(_ name: String) throws -> FilePath {
      let path = folder.appending(name)
      try FileManager.default.createDirectory(
        atPath: path.string, withIntermediateDirectories: true)
      return path
    }
    ours = SQLiteContestant(folder: try made("ours"), isSealed: true)
    plain = SQLiteContestant(folder: try made("plain"), isSealed: false)
    func contestant(_ python: String, _ module: String, _ cipher: String) throws
      -> PeerContestant
    {
      try PeerContestant(
        python: python, script: script, module: module, cipher: cipher,
        folder: made("\(module)-\(cipher)"))
    }
    var peers: [Peer] = []
    for (module, ciphers) in [
      ("sqlcipher3", [("sqlcipher", Self.sqlCipher)]),
      ("apsw", [("chacha20", "MC chacha20"), ("aegis", "MC AEGIS")]),
    ] {
      guard let python = pythons[module] else { continue }
      let plain = try contestant(python, module, "plain")
      for (cipher, name) in ciphers {
        let sealed = try contestant(python, module, cipher)
        peers.append(Peer(name: name, sealed: sealed, plain: plain))
      }
    }
    self.peers = peers
  }
}
