extension ServerConfiguration {
  /// Decides what is listened on, and with what protection.
  ///
  /// Sockets of the service manager take the place of `addresses`, those named `stomp` that of `stompAddresses`, and one
  /// named `operations` that of `operationsAddress`. A certificate is used for TCP, not for Unix sockets, unless the name
  /// of a socket says otherwise: `tls` or `plain`. Metrics and health are served without TLS.
  ///
  /// - Throws: ``ServerError`` for a socket named `tls` without a certificate, or two named `operations`.
  package mutating func listen(
    on addresses: [ListenAddress], stomp stompAddresses: [ListenAddress] = [],
    operations operationsAddress: ListenAddress?, inherited: [InheritedSocket],
    identity: TLSIdentity?
  ) throws(ServerError) {
    var clients: [Listening] = []
    var stomp: [Listening] = []
    var operations: [Listening] = []
    for socket in inherited {
      let address = ListenAddress(inherited: socket.descriptor)
      switch socket.purpose {
      case .operations: operations.append(Listening(address))
      case .plain: clients.append(Listening(address))
      case .usual: clients.append(Listening(address, identity: socket.isTCP ? identity : nil))
      case .stomp: stomp.append(Listening(address, identity: socket.isTCP ? identity : nil))
      case .encrypted:
        guard let identity else {
          throw ServerError(
            .invalidCertificate, "\(address) is named 'tls', and there is no certificate",
            hint: "give --tls-certificate and --tls-key, or name it otherwise in its socket unit")
        }
        clients.append(Listening(address, identity: identity))
      }
    }
    guard operations.count <= 1 else {
      throw ServerError(
        .cannotListen, "two sockets of the service manager are named 'operations'",
        hint: "give one of them another name in its socket unit")
    }
    func listen(_ addresses: [ListenAddress]) -> [Listening] {
      addresses.map { Listening($0, identity: $0.isUnix ? nil : identity) }
    }
    listening = clients.isEmpty ? listen(addresses) : clients
    stompListening = stomp.isEmpty ? listen(stompAddresses) : stomp
    operationsListening = operations.first ?? operationsAddress.map { Listening($0) }
  }
}
