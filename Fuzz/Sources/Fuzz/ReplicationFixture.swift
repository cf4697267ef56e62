@_spi(Testing) import QueueReplication
@_spi(Testing) import Replication

/// What a node reads from others: records and what they have, key rings, requests, join requests and invitations.
///
/// The first byte of the input selects one of these.
final class ReplicationFixture {
  private let node: ReplicationProbe.Node
  private let rows: QueueReplicationProbe.Rows

  init() {
    do {
      node = try ReplicationProbe.Node()
      rows = try QueueReplicationProbe.Rows()
    } catch {
      preconditionFailure("the fixture cannot be made: \(error)")
    }
    require(node.opens(invitation: node.invitation), "an unchanged invitation is refused")
    require(node.opens(request: node.request), "an unchanged request is refused")
    require(
      ReplicationProbe.joinRequestAgain(node.joinRequest) == node.joinRequest,
      "an unchanged join request is refused")
    require(rows.rows(after: rows.changes)?.count == 3, "unchanged rows are refused")
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let mode = input.first else { return }
    let rest = UnsafeBufferPointer(rebasing: input.dropFirst())
    let forms = ReplicationProbe.Form.allCases
    switch Int(mode) % (forms.count + 9) {
    case 0: changedInvitation(rest)
    case 1: changedRequest(rest)
    case 2: changedJoinRequest(rest)
    case 3: joinRequest(Array(rest))
    case 4: texts(String(decoding: rest, as: UTF8.self))
    case let form where form < forms.count + 5:
      same(rest) { ReplicationProbe.encodedAgain($0, as: forms[form - 5]) }
    case forms.count + 5: same(rest, QueueReplicationProbe.operationAgain)
    case forms.count + 6: _ = QueueReplicationProbe.contentAgain(Array(rest))
    case forms.count + 7: changedRows(Array(rest))
    default:
      guard let edits = Edits(rest) else { return }
      var changes = rows.changes
      edits.apply(to: &changes)
      changedRows(changes)
    }
  }

  private func same(
    _ input: UnsafeBufferPointer<UInt8>, _ encodedAgain: ([UInt8]) -> [UInt8]?
  ) {
    let bytes = Array(input)
    guard let again = encodedAgain(bytes) else { return }
    require(again == bytes, "a value has two encodings")
  }

  /// Changes of rows do not reach a table for which they are not allowed.
  private func changedRows(_ changes: [UInt8]) {
    guard let rows = rows.rows(after: changes) else { return }
    require(rows.first?.contains("one") == true, "a change has reached another table")
  }

  /// An invitation that was changed does not open, even if an operator enters its new fingerprint.
  private func changedInvitation(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    var file = node.invitation
    edits.apply(to: &file)
    require(
      node.opens(invitation: file) == (file == node.invitation), "a changed invitation opens")
  }

  private func changedRequest(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    var bytes = node.request
    edits.apply(to: &bytes)
    require(node.opens(request: bytes) == (bytes == node.request), "a changed request opens")
  }

  private func changedJoinRequest(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    var file = node.joinRequest
    edits.apply(to: &file)
    joinRequest(file)
  }

  /// What is read is the same after it is written.
  private func joinRequest(_ file: [UInt8]) {
    guard let again = ReplicationProbe.joinRequestAgain(file) else { return }
    require(ReplicationProbe.joinRequestAgain(again) == again, "a join request comes back changed")
  }

  private func texts(_ text: String) {
    if let again = ReplicationProbe.userKeyAgain(text) {
      require(again == text, "a NATS key has two encodings")
    }
    if let again = ReplicationProbe.fingerprintAgain(text) {
      require(
        ReplicationProbe.fingerprintAgain(again) == again, "a fingerprint comes back changed")
    }
  }
}
