extension VaultError {
  /// A file outside of any store that breaks a rule of the format, or follows a later one.
  static func refused(_ fault: FormatFault, at place: String) -> VaultError {
    if let version = fault.newerVersion {
      return VaultError(
        .newerVersion, "\(place) has format version \(version), newer than this software reads",
        hint: "update this software")
    }
    return VaultError(
      .damaged, "\(place) is no vault, or a damaged one: \(fault)",
      hint: "take another copy of it")
  }
}
