import SealedSQLite
import VaultCrypto

func move(fromPlain key: borrowing SecretBytes) throws {
  try SealedDatabase.copy(
    from: .plain("plain.db"), to: .sealed("notes.db", key: key.copy()))
}
