import BrokerCluster
import TestSupport
import Testing

/// `datavault queue` on a member's home of a cluster.
@Suite(.enabled(if: BrokerCluster.program != nil, Comment(rawValue: BrokerCluster.skipReason)))
struct ClusterQueueTests {
  @Test func `queue commands change a member's home through its server alone`() throws {
    let server = try ServerHome()
    let broker = try server.becomeMember()
    let home = server.home
    let refused = try home.queue("publish", "orders", input: "a\n").expect(78)
    #expect(refused.errors.contains("datavaultd serve"), "\(refused.errors)")
    try server.serving { _ in
      try home.queue("publish", "orders", input: "a\nb\nc\n").expect(0)
      try home.queue("publish", "orders", "--json", input: "d\n").expect(0)
      #expect(try home.queue("history", "orders").text == "a\nb\nc\nd\n")
      try home.queue("consumers", "add", "orders", "billing").expect(0)
      try home.queue("retention", "set", "orders", "--count", "9").expect(0)
      try home.queue("redrive", "orders", "17000000000000000").expect(66)
      try home.queue("purge", "orders", "--yes").expect(0)
      #expect(try home.queue("history", "orders").text == "")
      #expect(try home.queue("consumers", "orders").text.contains("billing"))
      #expect(try home.queue("receive", "orders").expect(78).errors.contains("a client of"))
    }
    withExtendedLifetime(broker) {}
  }
}
