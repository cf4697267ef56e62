import BrokerCluster
import Foundation
import GRDB
import JetStreamLog
import MessagingQueue
import QueueReplication
import Replication
import TestSupport
import Testing
import VaultCrypto

/// Markers, which are also found in base64 at each offset, and in hexadecimal digits.
private struct MarkerSearch {
  private let needles: [(name: String, bytes: [UInt8])]

  init(_ markers: [String: [UInt8]]) {
    needles = markers.flatMap { name, marker in
      let digits = marker.map { String(format: "%02x", $0) }.joined()
      let texts = (0..<3).flatMap { offset in
        // Only the characters that the bytes around the marker do not change.
        let text = Data([UInt8](repeating: 0, count: offset) + marker).base64EncodedString()
        let whole = text.prefix((offset + marker.count) * 8 / 6)
        let part = String(whole.dropFirst((offset * 8 + 5) / 6))
        let forURLs = part.replacing("+", with: "-").replacing("/", with: "_")
        return [part, forURLs]
      }
      return ([digits, digits.uppercased()] + texts).map { (name, Array($0.utf8)) } + [
        (name, marker)
      ]
    }
  }

  /// The names of the markers that are in the bytes.
  func names(in bytes: [UInt8]) -> Set<String> {
    let bytes = Data(bytes)
    return Set(needles.filter { bytes.range(of: Data($0.bytes)) != nil }.map(\.name))
  }
}

/// What the wire and the brokers have of what nodes keep secret.
@Suite(
  .enabled(if: BrokerCluster.program != nil, Comment(rawValue: BrokerCluster.skipReason)),
  .serialized, .timeLimit(.minutes(10)))
struct BrokerSecrecyTests {
  private static let texts = [
    "payload": "what only clients know", "header": "header-of-clients",
    "header value": "value of the header", "channel": "channel-of-clients",
    "consumer": "consumer-of-clients", "ordering key": "key-that-orders",
    "deduplication id": "id-of-the-publication", "user": "name-of-a-user",
  ]
  private let folder = ScratchFolder()

  /// All that brokers have and say, by where it was found.
  private static func places(_ cluster: BrokerCluster, wire: [UInt8]) throws -> [String: [UInt8]] {
    var places = ["the wire": wire]
    for index in 0..<3 {
      let store = cluster.store(of: index)
      var stored: [UInt8] = []
      for name in try FileManager.default.subpathsOfDirectory(atPath: store) {
        stored +=
          Array(name.utf8) + (FileManager.default.contents(atPath: "\(store)/\(name)") ?? Data())
      }
      places["the store of broker \(index)"] = stored
      places["the log of broker \(index)"] = Array(cluster.log(of: index).utf8)
      for target in [
        "/jsz?streams=1&consumers=1&config=1", "/connz?subs=1", "/subsz?subs=1", "/varz",
      ] {
        places["\(target) of broker \(index)"] = try cluster.monitoring(of: index, target)
      }
    }
    return places
  }

  /// Publishes and works at both nodes with all that clients can name.
  private func work(at nodes: [ClusterNode]) async throws {
    func text(_ name: String) throws -> String { try #require(Self.texts[name]) }
    let channel = try Channel(try text("channel"))
    let consumer = try Consumer(try text("consumer"))
    try await nodes[0].engine.addConsumer(consumer, of: channel)
    for index in 0..<20 {
      try await nodes[index % 2].engine.publish(
        Message(
          channel: channel, payload: Array("\(try text("payload")) \(index)".utf8),
          headers: [try text("header"): try text("header value")],
          orderingKey: try text("ordering key"),
          deduplicationID: "\(try text("deduplication id"))-\(index)"))
    }
    // One of the nodes forwards what it is asked to lease and to settle.
    for index in 0..<20 {
      let delivery = try #require(
        try await nodes[index % 2].engine.receive(
          from: channel, for: consumer, lease: .seconds(10), waitingUpTo: .seconds(60)
        ).first)
      if index == 10 {
        try await nodes[index % 2].engine.release(delivery.token, reason: try text("payload"))
      } else {
        try await nodes[index % 2].engine.acknowledge(delivery.token)
      }
    }
    let user = try text("user")
    try await nodes[1].engine.changeRows(in: ["server_user"]) {
      try $0.execute(sql: "INSERT INTO server_user VALUES (1, ?)", arguments: [user])
    }
  }

  @Test func `neither the wire nor anything of the brokers has what clients sent, or a key`()
    async throws
  {
    var options = BrokerCluster.Options()
    options.isTraced = true
    let shard = try BrokerShard(options)
    let cluster = shard.cluster
    let direct = try await shard.provisioned(replicas: 3)
    let proxies = try (0..<2).map { try BrokerProxy(to: cluster.port(of: $0)) }
    var nodes: [ClusterNode] = []
    for (index, proxy) in proxies.enumerated() {
      proxy.record()
      nodes.append(
        try await ClusterNode(
          shard, member: UInt128(index + 1), at: folder.path("\(index).db"),
          addresses: [proxy.address],
          tables: "CREATE TABLE server_user(id INTEGER PRIMARY KEY, name TEXT) STRICT"
        ) {
          $0.serverTables = ["server_user"]
          $0.ownership.longestLease = .seconds(10)
        })
    }
    try await work(at: nodes)
    try await expectEqual(nodes[0], nodes[1])

    let ring = try shard.ring()
    var markers = Self.texts.mapValues { Array($0.utf8) }
    markers["key"] = Array(ring.encodedBytes().array()[1..<17])
    markers["secret of the names"] = Array(ring.namingSecret().array().prefix(16))
    let search = MarkerSearch(markers)
    func wire() -> [UInt8] { proxies.flatMap(\.recorded) }
    for (place, bytes) in try Self.places(cluster, wire: wire()) {
      #expect(search.names(in: bytes) == [], "\(place)")
      // It is the place that was meant.
      let general = ["/varz": "server_name", "/connz": "num_connections"]
      let mark =
        general.first { place.hasPrefix($0.key) }?.value ?? String(direct.names.stream.dropFirst(3))
      #expect(Data(bytes).range(of: Data(mark.utf8)) != nil, "\(place)")
    }
    // The same search finds them at the nodes, and what goes to the brokers in another form.
    let own = try ["0.db", "0.db-wal", "1.db", "1.db-wal"].flatMap { try folder.bytes($0) }
    #expect(search.names(in: own).isSuperset(of: Self.texts.keys))
    let traitor = try shard.log { $0.addresses = [proxies[0].address] }
    for (number, encoded) in [
      "." + Data("x\(Self.texts["user"] ?? "")".utf8).base64EncodedString(),
      (Self.texts["channel"] ?? "").utf8.map { String($0, radix: 16) }.joined(),
    ].enumerated() {
      try traitor.append([
        try SealedRecord(
          RecordNumber(AuthorID(7), UInt64(number + 1)), key: 1, sealed: Array(encoded.utf8))
      ])
    }
    try await eventually("the search finds what is there") {
      try Self.places(cluster, wire: wire()).allSatisfy { place, bytes in
        place.hasPrefix("/") || search.names(in: bytes) == ["user", "channel"]
      }
    }
    traitor.close()
    for node in nodes { await node.stop() }
    direct.close()
  }
}
