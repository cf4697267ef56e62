/// The calls of the Secret Service that a store makes, over a connection of its own.
///
/// The vault's bytes are sealed already, so the session is `plain`: nothing secret crosses the bus.
///
/// https://specifications.freedesktop.org/secret-service/latest/
struct SecretService: ~Copyable {
  private static let name = "org.freedesktop.secrets"
  private static let path = "/org/freedesktop/secrets"
  private static let interface = "org.freedesktop.Secret.Service"
  private static let collection = "org.freedesktop.Secret.Collection"
  private static let item = "org.freedesktop.Secret.Item"
  private static let properties = "org.freedesktop.DBus.Properties"
  /// The path that stands for "none".
  private static let none = "/"
  /// The most that an answer may have: the paths of 20,000 items.
  private static let usualByteCount = 1 << 20
  /// The most that an answer with a secret may have: what one array of a message holds, and more than
  /// the largest vault.
  private static let secretByteCount = 65 << 20

  private let bus: BusConnection
  private let session: String

  init(
    address: String, patience: BusTimeouts, interruption: BusFaultInjector?
  ) throws(BusFailure) {
    let bus = try BusConnection(
      address: address, patience: patience, interruption: interruption)
    try Self.introduce(bus)
    let reply = try bus.call(
      "OpenSession", of: Self.interface, on: Self.path, at: Self.name,
      [.string("plain"), .variant(.string(""))], answering: "(vo)", of: Self.usualByteCount)
    guard reply.count == 2, let session = reply[1].objectPath else { throw .misunderstood }
    self.bus = bus
    self.session = session
  }

  /// Makes the service know this connection before it is asked for anything.
  ///
  /// GNOME Keyring (42 to 50) notes a new caller in one task of its main loop and answers in another; now
  /// and then the answer comes first, finds no caller, and the daemon ends with all that it had unlocked.
  /// An alias that nobody has is looked up without the caller, and once that is answered the note is the
  /// next task: https://gitlab.gnome.org/GNOME/gnome-keyring/-/issues/195.
  private static func introduce(_ bus: borrowing BusConnection) throws(BusFailure) {
    _ = try bus.call(
      "ReadAlias", of: interface, on: path, at: name, [.string("datavault-knocks")],
      answering: "(o)", of: usualByteCount)
  }

  /// The items that have these attributes and maybe more, in every collection.
  func search(
    _ attributes: [String: String]
  ) throws(BusFailure) -> (unlocked: [String], locked: [String]) {
    let reply = try call(
      "SearchItems", of: Self.interface, on: Self.path, .texts(attributes), answering: "(aoao)")
    guard reply.count == 2, let unlocked = reply[0].objectPaths,
      let locked = reply[1].objectPaths
    else { throw .misunderstood }
    return (unlocked, locked)
  }

  /// Where new items go; nil when the user has no such collection.
  func defaultCollection() throws(BusFailure) -> String? {
    let reply = try call(
      "ReadAlias", of: Self.interface, on: Self.path, .string("default"), answering: "(o)")
    guard let path = reply.first?.objectPath else { throw .misunderstood }
    return path == Self.none ? nil : path
  }

  func isLocked(_ collection: String) throws(BusFailure) -> Bool {
    let reply = try call(
      "Get", of: Self.properties, on: collection, .string(Self.collection), .string("Locked"),
      answering: "(v)")
    guard let isLocked = reply.first?.inner?.boolean else { throw .misunderstood }
    return isLocked
  }

  func attributes(of item: String) throws(BusFailure) -> [String: String] {
    let reply = try call(
      "Get", of: Self.properties, on: item, .string(Self.item), .string("Attributes"),
      answering: "(v)")
    guard let attributes = reply.first?.inner?.texts else { throw .misunderstood }
    return attributes
  }

  /// Gives an item other attributes, in one step: it stops being one thing and is another.
  func setAttributes(_ attributes: [String: String], of item: String) throws(BusFailure) {
    _ = try call(
      "Set", of: Self.properties, on: item, .string(Self.item), .string("Attributes"),
      .variant(.texts(attributes)), answering: "()")
  }

  func secret(of item: String) throws(BusFailure) -> [UInt8] {
    let reply = try call(
      "GetSecret", of: Self.item, on: item, .objectPath(session), answering: "((oayays))",
      of: Self.secretByteCount)
    guard let parts = reply.first?.elements, parts.count == 4, let bytes = parts[2].bytes else {
      throw .misunderstood
    }
    return bytes
  }

  func setSecret(_ bytes: [UInt8], of item: String) throws(BusFailure) {
    _ = try call("SetSecret", of: Self.item, on: item, secret(bytes), answering: "()")
  }

  /// Makes an item; not in one step, so that its attributes must not be the final ones yet.
  func createItem(
    in collection: String, label: String, attributes: [String: String], secret bytes: [UInt8]
  ) throws(BusFailure) -> String {
    let reply = try call(
      "CreateItem", of: Self.collection, on: collection,
      .properties([
        "\(Self.item).Label": .string(label), "\(Self.item).Attributes": .texts(attributes),
      ]), secret(bytes), .boolean(false), answering: "(oo)")
    guard reply.count == 2, let item = reply[0].objectPath else { throw .misunderstood }
    try Self.refusePrompt(reply[1])
    return item
  }

  func delete(_ item: String) throws(BusFailure) {
    let reply = try call("Delete", of: Self.item, on: item, answering: "(o)")
    guard let prompt = reply.first else { throw .misunderstood }
    try Self.refusePrompt(prompt)
  }

  /// The structure that the specification calls Secret.
  private func secret(_ bytes: [UInt8]) -> BusValue {
    .tuple([.objectPath(session), .bytes([]), .bytes(bytes), .string("text/plain")])
  }

  private func call(
    _ method: String, of interface: String, on path: String, _ arguments: BusValue...,
    answering type: String, of byteCount: Int = usualByteCount
  ) throws(BusFailure) -> [BusValue] {
    try bus.call(
      method, of: interface, on: path, at: Self.name, arguments, answering: type, of: byteCount)
  }

  /// A store never asks anybody anything: a daemon has nobody to ask.
  private static func refusePrompt(_ prompt: BusValue) throws(BusFailure) {
    guard prompt.objectPath == none else {
      throw BusFailure(.locked, "the secret service wants to ask the user first")
    }
  }
}
