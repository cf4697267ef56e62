/// Gives a fuzzer access to the reader and the checks of JSON texts.
@_spi(Testing)
public enum JSONProbe {
  /// The greatest depth that a reader can be asked for.
  public static var maximumDepth: Int { JSONReader.maximumDepth }

  /// The value of a text, or why it has none: the end of a sentence.
  public static func read(
    _ text: [UInt8], maximumDepth: Int = maximumDepth
  ) -> (value: JSONValue?, fault: String) {
    do throws(JSONFault) {
      return (try JSONReader.value(text, maximumDepth: maximumDepth), "")
    } catch {
      return (nil, error.reason.rawValue)
    }
  }

  /// The place of the value in a text that is checked but not read; nil if it is refused.
  public static func check(_ text: [UInt8], acceptsHalfPairs: Bool = false) -> Range<Int>? {
    try? JSONText.check(
      text, maximumDepth: maximumDepth, acceptsHalfPairs: acceptsHalfPairs)
  }

  /// The place of a member's value in an object; nil if there is none, or if the text is refused.
  public static func member(_ name: String, in text: [UInt8]) -> Range<Int>? {
    try? JSONText.member(name, in: text, maximumDepth: maximumDepth)
  }
}
