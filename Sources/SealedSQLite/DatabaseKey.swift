public import SealedVFS

/// Where a database's key is kept, as ``SealedDatabase`` takes it: 32 raw bytes in a key file, or
/// behind an open descriptor.
public typealias DatabaseKey = KeySource
