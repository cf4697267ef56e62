import NIOCore
import Testing

@testable import MessagingServer

/// Which addresses webhooks reach.
@Suite struct WebhookAddressTests {
  private func kind(_ text: String) throws -> WebhookAddress {
    WebhookAddress(try SocketAddress(ipAddress: text, port: 443))
  }

  @Test(arguments: [
    "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
    "128.0.0.1", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0",
    "172.15.255.255", "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700:4700::1111",
    "2a00::1", "2001:4860:4860::8888", "64:ff9b::1.1.1.1",
  ])
  func `hosts of the internet are reached`(address: String) throws {
    #expect(try kind(address) == .public)
  }

  @Test(arguments: [
    "127.0.0.1", "127.255.255.255", "::1", "10.0.0.0", "10.255.255.255", "172.16.0.0",
    "172.31.255.255", "192.168.0.0", "192.168.255.255", "fc00::1", "fdff::1", "fd00:ec1::1",
    "fd00:ec3::", "fd20:ce::253", "100.100.100.199", "100.100.100.201", "100.64.0.0",
    "100.127.255.255", "192.0.0.1", "192.0.0.191", "192.0.2.1",
    "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "2001:db8::1",
  ])
  func `this machine and private networks are private`(address: String) throws {
    #expect(try kind(address) == .private)
  }

  @Test(arguments: [
    "169.254.0.0", "169.254.0.1", "169.254.169.254", "169.254.255.255", "fe80::1",
    "fe80::a9fe:a9fe",
    "febf::1", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "100.100.100.200", "192.0.0.192",
    "168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::168.63.129.16", "64:ff9b::100.100.100.200",
  ])
  func `link-local addresses and the metadata services of clouds are forbidden`(
    address: String
  ) throws {
    #expect(try kind(address) == .forbidden)
  }

  @Test(arguments: [
    "0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "239.255.255.255",
    "240.0.0.1", "255.255.255.255", "ff02::1", "::ffff:1.1.1.1", "::ffff:127.0.0.1",
    "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254",
    "64:ff9b:1::1", "2002:7f00:1::1", "2001:0:7f00:1::1", "100::1", "fec0::1", "4000::1",
  ])
  func `what is no host, or stands for another address, is forbidden`(address: String) throws {
    #expect(try kind(address) == .forbidden)
  }

  @Test func `a Unix socket is forbidden`() throws {
    #expect(WebhookAddress(try SocketAddress(unixDomainSocketPath: "/tmp/x")) == .forbidden)
  }
}
