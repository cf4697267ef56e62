/// A SQLite, sealed or plain, that runs the workloads in its own folder.
protocol Contestant: AnyObject {
  /// Creates and fills a database, unless it exists, and opens it.
  func prepare(_ recipe: DatabaseRecipe) throws
  /// Runs a pass on the database and returns its cost.
  func run(_ pass: Pass, on recipe: DatabaseRecipe, as kind: Workload.Kind) throws -> Cost
}
