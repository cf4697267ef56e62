@_spi(Testing) import DataVault
import Foundation

/// The parsers of a vault file: of the file, of a file with a corrected digest, and of the
/// contents.
///
/// Outside this harness, only someone with the key reaches the parser of the contents.
final class VaultFixture {
  private let file: [UInt8]

  private static let tailByteCount = 56

  private static let contents = Array(
    (#"{"generation":1,"passwordSetAt":1760000000,"policy":{"standardPassword":true,"#
      + #""minimumLength":8,"digit":false,"upper":false,"lower":false,"special":false,"#
      + #""minimumUniqueCharacters":0,"expirationDays":0,"lockTimeoutSeconds":0},"#
      + #""databases":null,"dataKeys":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","items":{"a \" ":{"string":"v \\ \n \u00e4"},"b":{"binary":"AAEC"}}}"#)
      .utf8)

  /// Reads the template; nil if the file does not exist.
  ///
  /// - Parameter template: the path of a vault file.
  init?(template: String) {
    guard let bytes = FileManager.default.contents(atPath: template) else { return nil }
    file = [UInt8](bytes)
    require(FormatProbe.isFile(file), "\(template) is not a vault")
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    switch edits.mode & 3 {
    case 0:
      var bytes = file
      edits.apply(to: &bytes)
      // The digest must detect every change of the file.
      require(!FormatProbe.isFile(bytes) || bytes == file, "a changed file is accepted")
    case 1:
      var head = Array(file.dropLast(Self.tailByteCount))
      edits.apply(to: &head)
      _ = FormatProbe.isFile(FormatProbe.fileWithTail(head))
    case 2:
      var text = Self.contents
      edits.apply(to: &text)
      check(text)
    default: check(Array(input.dropFirst()))
    }
  }

  /// Contents that are read and written must be read as equal again.
  private func check(_ text: [UInt8]) {
    guard let written = FormatProbe.contents(text) else { return }
    require(FormatProbe.contents(written) == written, "contents change when written")
  }
}
