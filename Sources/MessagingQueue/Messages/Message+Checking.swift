internal import Foundation

extension Message {
  /// Bytes that count against a channel's limit.
  var byteCount: Int { payload.count + HeaderCoding.byteCount(of: headers) }

  /// Refuses what no engine of this configuration takes; `which` names the message.
  package func check(_ configuration: EngineConfiguration, as which: String) throws(EngineError) {
    guard payload.count <= configuration.maximumPayloadByteCount else {
      throw EngineError(
        .payloadTooLarge,
        "\(which) has \(payload.count) bytes, the limit is \(configuration.maximumPayloadByteCount)",
        hint: "split it, or raise the engine's maximumPayloadByteCount")
    }
    try checkHeaders(configuration, as: which)
    for (text, what) in [(orderingKey, "ordering key"), (deduplicationID, "deduplication id")] {
      if let text, let fault = Name.fault(in: text) {
        throw EngineError(.invalidArgument, "the \(what) of \(which) \(fault)", hint: Name.rule)
      }
    }
    guard orderingKey == nil || priority == .normal else {
      throw EngineError(
        .invalidArgument, "\(which) has an ordering key and a priority",
        hint:
          "messages of one key are received in the order of publishing; leave one of the two out")
    }
    if case .after(let delay) = availability.moment,
      delay < .zero || delay > EngineConfiguration.longestHold
    {
      throw EngineError(
        .invalidArgument, "\(which) has a delay of \(delay)", hint: "nothing, or at most 366 days")
    }
    if let timeToLive, timeToLive <= .zero || timeToLive > EngineConfiguration.longestTimeToLive {
      throw EngineError(
        .invalidArgument, "\(which) has a time to live of \(timeToLive)",
        hint: "more than nothing, at most 100 years")
    }
  }

  private func checkHeaders(
    _ configuration: EngineConfiguration, as which: String
  ) throws(EngineError) {
    if headers.isEmpty { return }
    for name in headers.keys {
      if let fault = Name.fault(in: name) {
        throw EngineError(
          .invalidArgument, "the name of a header of \(which) \(fault)", hint: Name.rule)
      }
    }
    let byteCount = HeaderCoding.byteCount(of: headers)
    guard byteCount <= configuration.maximumHeaderByteCount else {
      throw EngineError(
        .payloadTooLarge,
        "\(which) has \(byteCount) bytes of headers, the limit is \(configuration.maximumHeaderByteCount)",
        hint: "carry them in the payload, or raise the engine's maximumHeaderByteCount")
    }
  }
}
