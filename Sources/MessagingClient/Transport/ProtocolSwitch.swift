internal import NIOCore

/// Where another protocol begins on a connection for requests.
///
/// Bytes behind the answer that switches protocols are not HTTP, and can come together with it and with the end of the
/// connection. Until the head of that answer is complete, this handler gives HTTP one line at a time. The handlers of
/// the new protocol are then behind this one, and before those of HTTP.
final class ProtocolSwitch: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// Whether the next head can switch protocols.
  var isExpected = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    while isExpected, let end = bytes.readableBytesView.firstIndex(of: UInt8(ascii: "\n")),
      let line = bytes.readSlice(length: end + 1 - bytes.readerIndex)
    {
      context.fireChannelRead(wrapInboundOut(line))
    }
    if bytes.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(bytes)) }
  }
}
