import SealedSQLite
import SealedVFS
import VaultCrypto

func move(passphrase: consuming SecretBytes, key: borrowing SecretBytes) throws {
  let old = DatabaseFile.sqlcipher4("old.db", key: try SQLCipherKey(passphrase))
  let new = DatabaseFile.sealed("notes.db", key: key.copy())
  try SealedDatabase.copy(from: old, to: new)
}
