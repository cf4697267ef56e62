/// One SQLite, sealed or plain, that runs the workloads in its own folder.
protocol Contestant: AnyObject {
  /// Makes and fills a database, if that is not done yet, and opens it.
  func prepare(_ recipe: DatabaseRecipe) throws
  /// Runs a pass on it and says what that took.
  func run(_ pass: Pass, on recipe: DatabaseRecipe, as kind: Workload.Kind) throws -> Cost
}
