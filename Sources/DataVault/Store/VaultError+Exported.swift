extension VaultError {
  /// A file outside of any store that breaks a rule of the format, or follows another one.
  static func refused(_ fault: FormatFault, at place: String) -> VaultError {
    if let version = fault.otherVersion {
      return VaultError(
        .newerVersion,
        "\(place) has format version \(version), this software reads \(ClearMembers.version)",
        hint: "use the version of this software that wrote it")
    }
    return VaultError(
      .damaged, "\(place) is no vault, or a damaged one: \(fault)",
      hint: "take another copy of it")
  }
}
