/// A rule of the vault format that some bytes break.
///
/// It names the part, never its contents.
struct FormatFault: Error, CustomStringConvertible {
  let part: String
  let reason: String
  /// Set when nothing is broken, but the file is of this other version.
  let otherVersion: Int?

  init(_ part: String, _ reason: String) {
    self.part = part
    self.reason = reason
    otherVersion = nil
  }

  init(otherVersion: Int) {
    part = "version"
    reason = "\(otherVersion), and this software reads \(ClearMembers.version)"
    self.otherVersion = otherVersion
  }

  var description: String { "\(part): \(reason)" }
}
