import MessageCipher
import TestSupport
import Testing
import VaultCrypto

/// DataVault's form, judged by a program that was written from its page alone.
@Suite(.enabled(if: PythonProgram.reference.isAvailable, PythonProgram.reference.skipReason))
struct ReferenceReaderTests {
  private struct Case {
    let key = SecretBytes.random(byteCount: 32).array()
    let channel: String
    let member: String?
    let plaintext: String

    var line: [String: Any] {
      var line: [String: Any] = ["key": key.hexadecimal, "channel": channel]
      line["place"] = member == nil ? "message" : "member"
      line["name"] = member
      return line
    }

    func cipher() throws -> MessageCipher { try MessageCipher(key: SecretBytes(copying: key)) }
  }

  private static let cases = ["c", "größe/📚", String(repeating: "x", count: 1024)].flatMap {
    channel in
    [nil, "pn_other", "", "Bücher \"2\""].flatMap { member in
      ["0", #""""#, #""zwei Bücher \ud83d 📚""#, "[\(String(repeating: "1,", count: 9000))1]"].map {
        Case(channel: channel, member: member, plaintext: $0)
      }
    }
  }

  @Test func `the reader opens what is encrypted here`() throws {
    let lines = try Self.cases.map { sample in
      var line = sample.line
      if let member = sample.member {
        let name = member.replacing("\"", with: "\\\"")
        let object = try sample.cipher().encrypt(
          member: member, of: "{\"\(name)\":\(sample.plaintext)}".utf8, channel: sample.channel)
        let value = object.dropFirst(name.utf8.count + 4).dropLast()
        line["message"] = String(decoding: value.dropLast(), as: UTF8.self)
      } else {
        let message = try sample.cipher().encrypt(sample.plaintext.utf8, channel: sample.channel)
        line["message"] = Base64.text(try sealedBytes(message))
      }
      return line
    }
    for (sample, answer) in zip(Self.cases, try PythonProgram.reference.run(lines)) {
      #expect(answer as? String == Base64.text(Array(sample.plaintext.utf8)))
    }
  }

  @Test func `what the reader encrypts opens here`() throws {
    let lines = Self.cases.map { sample in
      sample.line.merging(["plaintext": Base64.text(Array(sample.plaintext.utf8))]) { $1 }
    }
    for (sample, answer) in zip(Self.cases, try PythonProgram.reference.run(lines)) {
      let text = "\"\(try #require(answer as? String))\""
      let cipher = try sample.cipher()
      if let member = sample.member {
        let name = member.replacing("\"", with: "\\\"")
        let opened = try cipher.decrypt(
          member: member, of: "{\"\(name)\":\(text)}".utf8, channel: sample.channel)
        #expect(opened.text == "{\"\(name)\":\(sample.plaintext)}")
      } else {
        #expect(try cipher.decrypt(text.utf8, channel: sample.channel).text == sample.plaintext)
      }
    }
  }

  @Test func `the reader refuses a changed message and another channel`() throws {
    let sample = Case(channel: "c", member: nil, plaintext: "1")
    let sealed = try sealedBytes(sample.cipher().encrypt("1".utf8, channel: "c"))
    var changed = sealed
    changed[42] ^= 1
    let lines = [
      sample.line.merging(["message": Base64.text(sealed)]) { $1 },
      sample.line.merging(["message": Base64.text(changed)]) { $1 },
      sample.line.merging(["message": Base64.text(sealed), "channel": "d"]) { $1 },
    ]
    let answers = try PythonProgram.reference.run(lines)
    #expect(answers.map { $0 as? String } == [Base64.text([UInt8(ascii: "1")]), nil, nil])
  }
}
