/// A rule of the vault format that some bytes break.
///
/// It names the part, never its contents.
struct FormatFault: Error, CustomStringConvertible {
  let part: String
  let reason: String
  /// Set when nothing is broken, but the file is of this later version.
  let newerVersion: Int?

  init(_ part: String, _ reason: String) {
    self.part = part
    self.reason = reason
    newerVersion = nil
  }

  init(newerVersion: Int) {
    part = "version"
    reason = "\(newerVersion) is newer than this software"
    self.newerVersion = newerVersion
  }

  var description: String { "\(part): \(reason)" }
}
