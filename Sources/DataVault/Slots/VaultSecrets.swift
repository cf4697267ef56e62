/// Several secrets, for what needs more than one: ``Vault/rotate(keeping:dropping:)``.
public struct VaultSecrets: ~Copyable, Sendable {
  /// An array holds only what can be copied: a reference to what cannot.
  private final class Box: Sendable {
    let secret: VaultSecret

    init(_ secret: consuming VaultSecret) {
      self.secret = secret
    }
  }

  private var boxes: [Box] = []

  /// None.
  public init() {}

  /// How many there are.
  public var count: Int { boxes.count }

  /// Takes over one more.
  public mutating func append(_ secret: consuming VaultSecret) {
    boxes.append(Box(secret))
  }

  /// Lends one of them, 0 to ``count`` - 1.
  public borrowing func withSecret<R: ~Copyable, E>(
    _ index: Int, _ body: (borrowing VaultSecret) throws(E) -> R
  ) throws(E) -> R {
    try body(boxes[index].secret)
  }

  /// A copy of one of them.
  public borrowing func copy(at index: Int) -> VaultSecret {
    boxes[index].secret.copy()
  }
}
