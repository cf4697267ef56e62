import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import TestSupport
import Testing

/// Certificates of a private authority of a test, made by openssl.
struct TestCertificates {
  let scratch = ScratchFolder()

  /// The file of the authority's certificate.
  var authority: String { scratch.path("ca.pem") }

  private static let settings = """
    [ca]
    default_ca = test
    [test]
    database = index.txt
    new_certs_dir = .
    rand_serial = yes
    default_md = sha256
    policy = any
    copy_extensions = copy
    unique_subject = no
    [any]
    commonName = supplied
    """

  private static let newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

  init() throws {
    try scratch.put(Self.settings, at: "ca.cnf")
    try scratch.put("", at: "index.txt")
    try openssl(
      ["req", "-x509"] + Self.newKey + [
        "-days", "2", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem",
      ])
  }

  private func openssl(_ arguments: [String]) throws {
    let done = try Program.run("/usr/bin/openssl", arguments, in: scratch.path(""))
    try #require(done.status == 0, "\(done.errors)")
  }

  /// A certificate and its key.
  ///
  /// - Parameters:
  ///   - subject: for whom it is: `IP:127.0.0.1` or `DNS:name`.
  ///   - isExpired: whether it has ended.
  ///   - isSelfSigned: whether it has no authority.
  func make(
    _ name: String, for subject: String = "IP:127.0.0.1", isExpired: Bool = false,
    isSelfSigned: Bool = false
  ) throws -> NIOSSLContext {
    let request =
      ["req"] + Self.newKey + [
        "-subj", "/CN=\(name)", "-addext", "subjectAltName=\(subject)", "-keyout", "\(name).key",
      ]
    if isSelfSigned {
      try openssl(request + ["-x509", "-days", "2", "-out", "\(name).pem"])
    } else {
      try openssl(request + ["-out", "\(name).csr"])
      let dates =
        isExpired ? ("20200101000000Z", "20200102000000Z") : ("20200101000000Z", "20990101000000Z")
      try openssl([
        "ca", "-batch", "-notext", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "ca.key",
        "-in", "\(name).csr", "-startdate", dates.0, "-enddate", dates.1, "-out", "\(name).pem",
      ])
    }
    let chain = try NIOSSLCertificate.fromPEMFile(scratch.path("\(name).pem"))
    return try NIOSSLContext(
      configuration: .makeServerConfiguration(
        certificateChain: chain.map { .certificate($0) },
        privateKey: .privateKey(NIOSSLPrivateKey(file: scratch.path("\(name).key"), format: .pem))))
  }
}

/// A server behind TLS, which gives the same answer to each request, and keeps what it can decrypt.
final class TLSServer: Sendable {
  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let server: TLSServer
    var text = ""
    init(_ server: TLSServer) { self.server = server }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = unwrapInboundIn(data)
      server.received.withLock { $0 += Array(bytes.readableBytesView) }
      text += String(buffer: bytes)
      guard text.hasSuffix("\r\n\r\n") || text.hasSuffix("\0"), let answer = server.answer else {
        return
      }
      text = ""
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
      if server.truncates {
        // Without TLS's farewell: what is under TLS closes.
        context.channel.pipeline.context(handlerType: NIOSSLServerHandler.self).whenSuccess {
          $0.close(promise: nil)
        }
      }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      context.close(promise: nil)
    }
  }

  private let received = Mutex<[UInt8]>([])
  private let answer: String?
  private let truncates: Bool
  private let channel = Mutex<(any Channel)?>(nil)

  var text: String { received.withLock { String(decoding: $0, as: UTF8.self) } }

  private init(_ answer: String?, _ truncates: Bool) {
    self.answer = answer
    self.truncates = truncates
  }

  /// Serves a test; `body` gets the port.
  static func run(
    _ tls: NIOSSLContext, _ answer: String? = nil, truncates: Bool = false,
    _ body: (TLSServer, Int) async throws -> Void
  ) async throws {
    let server = TLSServer(answer, truncates)
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandlers(
            NIOSSLServerHandler(context: tls), Handler(server))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(server, channel.localAddress?.port ?? 0))
    } catch {
      result = .failure(error)
    }
    try await channel.close()
    try result.get()
  }
}
