import Foundation
import TestSupport
import Testing

/// Keys and plaintext in the memory and the temporary files of a process with the extension.
@Suite struct SecrecyTests {
  private let bench = Workbench()

  /// Python gets the key as decimal numbers and compares single bytes, so that it does not find a
  /// copy of its own.
  @Test func `the key is in memory only while the database is open`() throws {
    let outcome = try bench.python(
      """
      def copies():
          first = [int(digits) for digits in sys.argv[1].split(",")]
          found = 0
          memory = open("/proc/self/mem", "rb", 0)
          for line in open("/proc/self/maps"):
              span, access = line.split()[:2]
              if "r" not in access or "[v" in line:
                  continue
              start, end = (int(address, 16) for address in span.split("-"))
              try:
                  memory.seek(start)
                  contents = memory.read(end - start)
              except (OSError, ValueError, OverflowError):
                  continue
              at = contents.find(bytes(first[:2]))
              while at >= 0:
                  found += all(
                      at + i < len(contents) and contents[at + i] == byte
                      for i, byte in enumerate(first))
                  at = contents.find(bytes(first[:2]), at + 1)
          return found
      db = sqlite3.connect("file:a.db?vfs=sealed&keyfile=key", uri=True)
      db.execute("CREATE TABLE t(x)")
      print(copies() > 0)
      db.close()
      print(copies())
      """, Workbench.keyBytes(1).map(String.init).joined(separator: ","))
    outcome.expectOutput("True\n0\n")
  }

  @Test(arguments: [
    "db = sqlite3.connect('file:a.db?vfs=sealed&keyfile=key', uri=True)",
    "db = sqlite3.connect('plain.db')",
  ])
  func `temporary files contain no plaintext`(opening: String) throws {
    let outcome = try bench.python(opening + "\n" + Self.makeTemporaryTable)
    outcome.expectOutput("True 0\n")
  }

  @Test func `the connection that loads the extension makes no temporary files`() throws {
    let outcome = try bench.python(
      """
      db = loader
      db.execute("ATTACH 'file:a.db?vfs=sealed&keyfile=key' AS a")

      """ + Self.makeTemporaryTable)
    outcome.expectOutput("False 0\n")
  }

  /// Prints whether there are large temporary files, and how often they contain the canary.
  private static let makeTemporaryTable = """
    db.execute("PRAGMA temp.cache_size=2")
    db.execute("CREATE TEMP TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1"
               " FROM n WHERE i<2000) SELECT i, '\(Workbench.canary)' AS x FROM n")
    byteCount, found = 0, 0
    for name in os.listdir("/proc/self/fd"):
        target = "/proc/self/fd/" + name
        try:
            if "etilqs" in os.readlink(target):
                contents = open(target, "rb").read()
                byteCount += len(contents)
                found += contents.count(b"\(Workbench.canary)")
        except OSError:
            pass
    print(byteCount > 10000, found)
    """
}
