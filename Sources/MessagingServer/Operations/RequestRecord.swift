internal import AccessControl

/// What is known of a request after its end: all that metrics and logs can say about it.
struct RequestRecord: Sendable, Equatable {
  /// The status that stands for a client that left before its answer, in logs and metrics only.
  static let abandoned = 499

  var route = Route.other
  /// `GET`, `POST`, `DELETE`, `OPTIONS`, `HEAD`, `PUT`, `PATCH` or `other`.
  var method: String
  /// Nil if it belongs to none, or was refused before its application was found.
  var application: ApplicationID?
  var status: Int
  /// The bytes of target and body as they were sent.
  var receivedByteCount: Int
  /// The bytes of the answer's body.
  var sentByteCount: Int
  /// From the last byte of the request to the answer.
  var time: Duration
  /// The number of the connection, from 1 for the first of the process.
  var connection: UInt64

  /// The word for a method that a client has chosen.
  static func word(forMethod method: String) -> String {
    ["GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH"].contains(method)
      ? method : "other"
  }
}
