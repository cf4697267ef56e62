/// The challenges of a 401, read from its `WWW-Authenticate` fields (RFC 9110, 11.6.1).
///
/// Fields are read one by one, so that a challenge begins and ends in the same field. In a field with a fault, the
/// challenges before the faulty one are kept; the faulty one and what follows it in the field are left out. Other
/// fields are not affected. A field with a control character other than a tab is left out as a whole.
public struct ChallengeList: Sendable, Hashable {
  /// The most bytes of all fields together: 64 KiB, room for a ticket of Kerberos.
  public static let maximumByteCount = 65_536
  /// The most challenges.
  public static let maximumChallengeCount = 16
  /// The most parameters of a challenge, and the most extra words.
  public static let maximumParameterCount = 32

  /// The challenges in the order of the fields.
  public private(set) var challenges: [Challenge] = []

  /// What is wrong with the first fault, in lower case and without the server's text; nil if there is none.
  public private(set) var fault: String?

  /// Reads fields.
  ///
  /// - Parameter fields: the values of the fields in their order. Fields that exceed a limit give a list without
  ///   challenges, or one that ends at the limit.
  public init(_ fields: [String]) {
    guard fields.reduce(0, { $0 + $1.utf8.count }) <= Self.maximumByteCount else {
      fault = "the fields have more than \(Self.maximumByteCount) bytes"
      return
    }
    for field in fields {
      var reader = ChallengeReader(field)
      let found = reader.read()
      if fault == nil { fault = reader.fault }
      for challenge in found {
        guard challenges.count < Self.maximumChallengeCount else {
          fault = fault ?? "there are more than \(Self.maximumChallengeCount) challenges"
          return
        }
        challenges.append(challenge)
      }
    }
  }
}
