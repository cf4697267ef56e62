public import StrictJSON

/// Gives a fuzzer access to the filters of subscribers.
@_spi(Testing)
public struct FilterProbe: Sendable {
  /// Why a text is no filter.
  public struct Fault: Error {
    /// What is wrong and where.
    public let description: String
    /// The byte of the text.
    public let offset: Int
  }

  /// The longest text, in bytes.
  public static var maximumByteCount: Int { FilterExpression.maximumByteCount }
  /// The most parentheses and unary operators around one another.
  public static var maximumDepth: Int { FilterExpression.maximumDepth }
  /// The most operands, operators and steps of paths.
  public static var maximumNodeCount: Int { FilterExpression.maximumNodeCount }

  private let filter: FilterExpression

  /// Parses a filter.
  public init(_ text: String) throws(Fault) {
    do throws(FilterFault) {
      filter = try FilterExpression(text)
    } catch {
      throw Fault(description: error.description, offset: error.offset)
    }
  }

  /// Whether an evaluation reads the payload.
  public var readsPayload: Bool { filter.readsPayload }

  /// Whether the filter is true for a message.
  public func matches(payload: JSONValue, meta: JSONValue) -> Bool {
    var stepCount = 0
    return filter.matches(payload: payload, meta: meta, &stepCount)
  }
}
