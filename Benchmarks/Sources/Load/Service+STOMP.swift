/// The frames of STOMP 1.2, the same for each server. The header `persistent` has a meaning for RabbitMQ alone.
extension Service {
  /// A queue that our server and RabbitMQ keep on the disk.
  private static let queue = "/queue/benchmark"

  static func stompGreeting(
    host: String, login: (name: String, passcode: String)?
  ) -> GreetingStep {
    let login = login.map { "login:\($0.name)\npasscode:\($0.passcode)\n" } ?? ""
    return GreetingStep(
      request: Array(
        "CONNECT\naccept-version:1.2\nhost:\(host)\nheart-beat:0,0\n\(login)\n\0".utf8),
      answer: "CONNECTED\n")
  }

  /// A publication that is on the disk before its receipt comes.
  static func stompFrame(publishing text: String, receipt: String) -> String {
    """
    SEND
    destination:\(queue)
    content-type:application/json
    content-length:\(text.utf8.count)
    persistent:true
    receipt:\(receipt)

    \(text)\0
    """
  }

  static func stompSubscription(prefetchCount: Int) -> [UInt8] {
    Array(
      """
      SUBSCRIBE
      id:0
      destination:\(queue)
      ack:client-individual
      prefetch-count:\(prefetchCount)

      \0
      """.utf8)
  }

  /// The acknowledgement of a message, with a receipt; nil if the frame is not a message.
  static func stompAcknowledgement(of frame: Answer) -> [UInt8]? {
    frame.text(between: "\nack:", and: "\n").map { id in
      Array("ACK\nid:\(id)\nreceipt:a\n\n\0".utf8)
    }
  }
}
