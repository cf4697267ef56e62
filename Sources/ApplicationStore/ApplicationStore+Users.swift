package import AccessControl
package import Foundation
internal import GRDB

/// A user of an application's realm, without the password.
package struct UserRecord: Sendable, Hashable {
  /// The name.
  package let name: Name
  /// The roles, whose grants the user has too.
  package let roles: Set<Name>
  /// When the user was added.
  package let created: Date
}

/// A user with the verifier of the password.
struct StoredUser: Sendable {
  let record: UserRecord
  let verifier: PasswordVerifier
}

/// Users, their roles, and their failed logins.
extension ApplicationStore {
  /// Adds a user, or gives one a new password and other roles.
  ///
  /// - Parameters:
  ///   - verifier: of ``ApplicationKeys/realm``, which derives a key.
  ///   - replaces: whether a user with this name can be there.
  /// - Throws: `unknownApplication`, `alreadyExists`, `tooManyUsers`, `newerVersion`, `engine`.
  @discardableResult
  package func put(
    user: Name, _ verifier: PasswordVerifier, roles: Set<Name>, of id: ApplicationID,
    replaces: Bool = false
  ) async throws(ApplicationStoreError) -> UserRecord {
    try await change("storing a user") { [limits, now] db, changes in
      let row = try ApplicationRow.require(id, db)
      guard roles.count <= limits.roleCount else {
        throw ApplicationStoreError(
          .tooManyUsers, "user '\(user)' would have more than \(limits.roleCount) roles",
          hint: "grant to fewer roles with more rights")
      }
      let old = try Self.user(user, of: id, db)
      guard old == nil || replaces else {
        throw ApplicationStoreError(
          .alreadyExists, "application '\(row.record.name)' already has a user '\(user)'",
          hint: "give --replace for a new password and other roles")
      }
      let created = old?.record.created ?? Date(ticks: now().ticks)
      try Self.deleteUser(user, of: id, db)
      try db.run(
        "INSERT INTO application_user VALUES (?, ?, ?, ?, ?, ?)", id.number, user.text,
        Data(verifier.salt), verifier.iterationCount, Data(verifier.code), created.ticks)
      for role in roles {
        try db.run(
          "INSERT INTO application_user_role VALUES (?, ?, ?)", id.number, user.text, role.text)
      }
      let count =
        try db.number(
          "SELECT count(*) FROM application_user WHERE application_id = ?", id.number) ?? 0
      let total = try db.number("SELECT count(*) FROM application_user") ?? 0
      guard count <= limits.userCount, total <= limits.totalUserCount else {
        throw ApplicationStoreError(
          .tooManyUsers,
          "application '\(row.record.name)' would have more than \(limits.userCount) users, or "
            + "all together more than \(limits.totalUserCount)",
          hint: "remove users, or use tokens")
      }
      changes = [.user(user, of: id)]
      return UserRecord(name: user, roles: roles, created: created)
    }
  }

  /// Removes a user with the grants for that user, so that a later one of the same name has none.
  ///
  /// - Throws: `unknownApplication`, `unknownUser`, `newerVersion`, `engine`.
  package func removeUser(
    _ user: Name, of id: ApplicationID
  ) async throws(ApplicationStoreError) {
    try await change("removing a user") { db, changes in
      _ = try ApplicationRow.require(id, db)
      guard try Self.deleteUser(user, of: id, db) else { throw Self.unknownUser(user, of: id) }
      changes = [.user(user, of: id)]
      let holder = GrantHolder.user(user)
      for grant in try Self.grants(of: id, db) where grant.key.holder == holder {
        changes.append(.grant(grant.key))
      }
      try db.run(
        "DELETE FROM application_grant WHERE application_id = ? AND holder = ?", id.number,
        Data(holder.stored))
      try db.run(
        "UPDATE application SET grant_count = grant_count - ? WHERE id = ?", db.changesCount,
        id.number)
    }
  }

  /// The users of an application, by their names.
  ///
  /// - Throws: `unknownApplication`, `damaged`, `newerVersion`, `engine`.
  package func users(of id: ApplicationID) async throws(ApplicationStoreError) -> [UserRecord] {
    try await read("listing users") { db in
      _ = try ApplicationRow.require(id, db)
      return try Self.users(of: id, db).map(\.record)
    }
  }

  /// The user with a name.
  ///
  /// - Throws: `unknownApplication`, `unknownUser`, `damaged`, `newerVersion`, `engine`.
  package func user(
    _ name: Name, of id: ApplicationID
  ) async throws(ApplicationStoreError) -> UserRecord {
    try await read("looking for a user") { db in
      _ = try ApplicationRow.require(id, db)
      guard let user = try Self.user(name, of: id, db) else {
        throw Self.unknownUser(name, of: id)
      }
      return user.record
    }
  }

  private static func unknownUser(_ name: Name, of id: ApplicationID) -> ApplicationStoreError {
    ApplicationStoreError(
      .unknownUser, "application '\(id)' has no user '\(name)'",
      hint: "datavaultd user list shows all users")
  }

  // MARK: - Failed logins

  /// The failed logins that were saved, for ``LoginLedger``.
  ///
  /// - Throws: `newerVersion`, `engine`.
  package func loginFailures() async throws(ApplicationStoreError) -> [LoginLedger.Record] {
    try await read("reading failed logins") { db in
      var records: [LoginLedger.Record] = []
      let rows = try db.rows(
        """
        SELECT subject, failures, last FROM application_login_failure ORDER BY last DESC LIMIT ?
        """, LoginLedger.Limits().subjectCount)
      while let row = try rows.next() {
        records.append(
          LoginLedger.Record(
            LoginSubject(bytes: try row.bytes(0)), failureCount: row[1],
            last: Date(ticks: row[2])))
      }
      return records
    }
  }

  /// Saves failed logins, and removes those that count no more.
  ///
  /// Readers need not learn of it.
  ///
  /// - Throws: `newerVersion`, `engine`.
  package func saveLoginFailures(
    _ stored: [LoginLedger.Record], removing removed: [LoginSubject]
  ) async throws(ApplicationStoreError) {
    let ended = now().addingTimeInterval(-LoginLedger.Limits().memory).ticks
    try await changeHere("saving failed logins") { db in
      for subject in removed {
        try db.run(
          "DELETE FROM application_login_failure WHERE subject = ?", Data(subject.bytes))
      }
      for record in stored {
        try db.run(
          "INSERT OR REPLACE INTO application_login_failure VALUES (?, ?, ?)",
          Data(record.subject.bytes), record.failureCount, record.last.ticks)
      }
      try db.run("DELETE FROM application_login_failure WHERE last < ?", ended)
    }
  }

  // MARK: - Rows

  /// The users of an application with their verifiers, by their names.
  static func users(of id: ApplicationID, _ db: Database) throws -> [StoredUser] {
    var roles: [Name: Set<Name>] = [:]
    let roleRows = try db.rows(
      "SELECT user, role FROM application_user_role WHERE application_id = ?", id.number)
    while let row = try roleRows.next() {
      guard let user = try? Name(row[0]), let role = try? Name(row[1]) else {
        throw ApplicationStoreError.damaged("a role", of: id)
      }
      roles[user, default: []].insert(role)
    }
    var users: [StoredUser] = []
    let rows = try db.rows("\(columns) WHERE application_id = ? ORDER BY name", id.number)
    while let row = try rows.next() { users.append(try user(row, of: id) { roles[$0] ?? [] }) }
    return users
  }

  /// The user with a name; nil if there is none.
  static func user(_ name: Name, of id: ApplicationID, _ db: Database) throws -> StoredUser? {
    guard
      let row = try db.row(
        "\(columns) WHERE application_id = ? AND name = ?", id.number, name.text)
    else { return nil }
    return try user(row, of: id) { _ in
      var roles: Set<Name> = []
      let rows = try db.rows(
        "SELECT role FROM application_user_role WHERE application_id = ? AND user = ?", id.number,
        name.text)
      while let row = try rows.next() {
        guard let role = try? Name(row[0]) else {
          throw ApplicationStoreError.damaged("a role", of: id)
        }
        roles.insert(role)
      }
      return roles
    }
  }

  private static let columns = "SELECT name, salt, iterations, code, created FROM application_user"

  private static func user(
    _ row: Row, of id: ApplicationID, roles: (Name) throws -> Set<Name>
  ) throws -> StoredUser {
    guard let name = try? Name(row[0]),
      let verifier = PasswordVerifier(
        salt: try row.bytes(1), iterationCount: row[2], code: try row.bytes(3))
    else { throw ApplicationStoreError.damaged("a user", of: id) }
    return StoredUser(
      record: UserRecord(name: name, roles: try roles(name), created: Date(ticks: row[4])),
      verifier: verifier)
  }

  /// Whether there was such a user.
  @discardableResult
  private static func deleteUser(
    _ name: Name, of id: ApplicationID, _ db: Database
  ) throws -> Bool {
    try db.run(
      "DELETE FROM application_user_role WHERE application_id = ? AND user = ?", id.number,
      name.text)
    try db.run(
      "DELETE FROM application_user WHERE application_id = ? AND name = ?", id.number, name.text)
    return db.changesCount > 0
  }
}
