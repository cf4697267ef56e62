internal import VaultCrypto

/// The plaintext of `contents`: everything that a vault keeps.
struct VaultContents: ~Copyable, Sendable {
  /// The most bytes that the JSON text may have: 32 MiB.
  static let maximumTextByteCount = 32 << 20

  var generation: Int
  var passwordSetAt: Int
  var policy: VaultPolicy
  var databases: DatabaseSecrets?
  var dataKeys: DataKeys
  var items: ItemTable

  /// The contents of a new vault, before its first write counts them as generation 1.
  init(passwordSetAt: Int, random: RandomSource) {
    generation = 0
    self.passwordSetAt = passwordSetAt
    policy = VaultPolicy()
    databases = nil
    dataKeys = DataKeys(random: random)
    items = ItemTable()
  }

  init(parsing bytes: RawSpan) throws(FormatFault) {
    let part = "contents"
    guard bytes.byteCount <= Self.maximumTextByteCount else {
      throw FormatFault(part, "larger than any vault's")
    }
    let members = try JSONText.members(
      ["generation", "passwordSetAt", "policy", "databases", "dataKeys", "items"],
      in: bytes, 0..<bytes.byteCount, of: part)
    let generation = try JSONText.number(in: bytes, members[0], of: part)
    let passwordSetAt = try JSONText.number(in: bytes, members[1], of: part)
    let policy = try VaultPolicy(parsing: bytes, members[2])
    let databases =
      JSONText.isNull(in: bytes, members[3])
      ? nil : try DatabaseSecrets(parsing: bytes, members[3])
    let dataKeys = try DataKeys(parsing: bytes, members[4])
    let items = try ItemTable(parsing: bytes, members[5])
    self.init(
      generation: generation, passwordSetAt: passwordSetAt, policy: policy,
      databases: databases, dataKeys: dataKeys, items: items)
  }

  private init(
    generation: Int, passwordSetAt: Int, policy: VaultPolicy,
    databases: consuming DatabaseSecrets?, dataKeys: consuming DataKeys,
    items: consuming ItemTable
  ) {
    self.generation = generation
    self.passwordSetAt = passwordSetAt
    self.policy = policy
    self.databases = databases
    self.dataKeys = dataKeys
    self.items = items
  }

  /// A copy to change: a failed write must leave the original as it is.
  borrowing func copy() -> VaultContents {
    VaultContents(
      generation: generation, passwordSetAt: passwordSetAt, policy: policy,
      databases: DatabaseSecrets.copy(of: databases), dataKeys: dataKeys.copy(),
      items: items.copy())
  }

  /// The JSON text.
  borrowing func text() -> SecretBytes {
    ByteWriter.secret { write(to: &$0) }
  }

  private borrowing func write(to writer: inout ByteWriter) {
    writer.append("{\"generation\":\(generation),\"passwordSetAt\":\(passwordSetAt),\"policy\":")
    writer.append(policy.text)
    writer.append(",\"databases\":")
    DatabaseSecrets.write(databases, to: &writer)
    writer.append(",\"dataKeys\":")
    dataKeys.write(to: &writer)
    writer.append(",\"items\":")
    items.write(to: &writer)
    writer.append("}")
  }
}
