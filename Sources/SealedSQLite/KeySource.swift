public import SealedVFS

/// Where a database's key is kept: a key file, or an open descriptor.
public typealias KeySource = SealedVFS.KeySource
