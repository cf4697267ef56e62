package import SystemPackage

/// Who a file belongs to.
package struct FileOwner: Sendable, Equatable {
  package let userID: UInt32
  package let groupID: UInt32

  package init(userID: UInt32, groupID: UInt32) {
    self.userID = userID
    self.groupID = groupID
  }
}

/// What lies at a path.
package struct FileStatus: Sendable, Equatable {
  /// The kinds that a store tells apart.
  package enum Kind: Sendable, Equatable {
    case regular, directory, symbolicLink, other
  }

  package let kind: Kind
  package let permissions: FilePermissions
  package let owner: FileOwner
  package let byteCount: Int64

  package init(kind: Kind, permissions: FilePermissions, owner: FileOwner, byteCount: Int64) {
    self.kind = kind
    self.permissions = permissions
    self.owner = owner
    self.byteCount = byteCount
  }

  /// Whether users other than the owner may read or write.
  package var isOpenToOthers: Bool {
    !permissions.isDisjoint(with: [.groupReadWrite, .otherReadWrite])
  }
}
