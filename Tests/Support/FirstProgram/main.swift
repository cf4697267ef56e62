// Sources/Notes/main.swift
import GRDB
import SealedSQLite

let key = try DatabaseKey.file("notes.key").read()
let notes = try SealedDatabase.openPool(at: "notes.db", key: key)
try notes.write { db in
  try db.execute(sql: "CREATE TABLE IF NOT EXISTS note (text TEXT NOT NULL)")
  try db.execute(sql: "INSERT INTO note VALUES (?)", arguments: ["for my eyes only"])
}
print(try notes.read { db in try String.fetchAll(db, sql: "SELECT text FROM note") })
