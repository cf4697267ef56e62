import DataVault
import SecretServiceStore
import SystemPackage

extension HostileBus {
  /// A correct service with one unlocked collection and, if `kept` is set, one item in it.
  struct Healthy: Sendable {
    static let item = "/org/freedesktop/secrets/collection/c/1"
    static let collection = "/org/freedesktop/secrets/collection/c"
    static let session = "/org/freedesktop/secrets/session/1"
    static let prompt = "/org/freedesktop/secrets/prompt/1"
    static let home: FilePath = "/nowhere/home"
    static let attributes = [
      ("application", "datavault"), ("home", "/nowhere/home"), ("vault", "messaging"),
    ]

    /// The bytes of the vault; nil for none.
    let kept: [UInt8]?

    func answer(_ call: Call) -> Answer {
      switch call.member {
      case "OpenSession": .values(BusBody().variant { $0.string("") }.path(Self.session))
      case "SearchItems": Self.found(kept != nil && call.mentions("vault") ? [Self.item] : [])
      case "ReadAlias": .values(BusBody().path(Self.collection))
      case "Get" where call.mentions("Locked"): .values(BusBody().variant { $0.flag(false) })
      case "Get": .values(BusBody().variant { $0.texts(Self.attributes) })
      case "GetSecret": .values(BusBody().secret(Self.session, kept ?? []))
      case "CreateItem": .values(BusBody().path(Self.item).path("/"))
      case "Delete": .values(BusBody().path("/"))
      default: .values(BusBody())
      }
    }

    static func found(_ items: [String]) -> Answer { .values(BusBody().paths(items).paths([])) }
  }

  /// A service that answers correctly except for some calls.
  ///
  /// - Parameter answer: the wrong answer to a call; nil for the correct one.
  static func keeping(
    _ kept: [UInt8]?, but answer: @escaping @Sendable (Call) -> Answer?
  ) -> HostileBus {
    HostileBus { answer($0) ?? Healthy(kept: kept).answer($0) }
  }

  /// The error code of an operation on a store on this bus; nil when it succeeds.
  func code(
    _ timeouts: BusTimeouts = .standard, _ body: (SecretServiceStore) throws -> Void
  ) -> VaultError.Code? {
    withExtendedLifetime(self) {
      SecretServiceStoreTests.code {
        try body(SecretServiceStore(home: Healthy.home, busAddress: address, busTimeouts: timeouts))
      }
    }
  }
}
