import Foundation
import TestSupport
import Testing

/// The trait `Network`, which guards what only the message server uses.
@Suite struct TraitTests {
  @Test func `a dependent without the trait fetches none of the server's packages`() async throws {
    let scratch = ScratchFolder()
    let manifest = """
      // swift-tools-version: 6.2
      import PackageDescription
      let package = Package(
        name: "Dependent",
        dependencies: [.package(name: "DataVault", path: "\(Repository.path(""))", traits: [])],
        targets: [
          .executableTarget(
            name: "Dependent", dependencies: [.product(name: "MessagingQueue", package: "DataVault")])
        ])
      """
    try scratch.put(manifest, at: "Package.swift")
    try FileManager.default.createDirectory(
      atPath: scratch.path("Sources/Dependent"), withIntermediateDirectories: true)
    try scratch.put("print(1)", at: "Sources/Dependent/main.swift")
    let folder = scratch.path("")
    let program = try await PubNubClient.onBlockingThread {
      try Program.run(
        "/usr/bin/env", ["swift", "package", "resolve", "--package-path", folder], in: folder)
    }
    try #require(program.status == 0, "\(program.errors)")
    let fetched = try FileManager.default.contentsOfDirectory(
      atPath: scratch.path(".build/checkouts"))
    #expect(fetched.contains("GRDB.swift"))
    for name in ["swift-nio", "swift-nio-ssl"] {
      #expect(!fetched.contains(name), "\(name) was fetched")
    }
  }
}
