internal import VaultCrypto

/// What the fuzz harnesses reach of credentials.
@_spi(Testing) public enum AuthorizationProbe {
  /// The bytes of a password.
  public static func bytes(of password: Password) -> [UInt8] {
    unsafe password.bytes.withUnsafeBytes { unsafe Array($0) }
  }
}
