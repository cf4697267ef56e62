internal import VaultCrypto

extension ItemTable {
  init(parsing text: RawSpan, _ range: Range<Int>) throws(FormatFault) {
    // Names and values never take more room than their JSON form.
    var builder = ItemTableBuilder(byteCount: range.count)
    try JSONText.forEachMember(in: text, range, of: "items") {
      (name, value) throws(FormatFault) in
      try builder.append(escapedName: name, value: value, of: text)
    }
    let table = builder.table()
    guard table.byteCount <= VaultItem.maximumTotalByteCount else {
      throw FormatFault("items", "too many bytes")
    }
    self = table
  }

  borrowing func write(to writer: inout ByteWriter) {
    writer.append("{")
    bytes.withBytes { bytes in
      var isFirst = true
      for entry in entries {
        if !isFirst { writer.append(",") }
        isFirst = false
        writer.appendJSONString(bytes, entry.name)
        switch entry.kind {
        case .string:
          writer.append(":{\"string\":")
          writer.appendJSONString(bytes, entry.value)
          writer.append("}")
        case .binary:
          writer.append(":{\"binary\":\"")
          writer.appendBase64URL(bytes, entry.value)
          writer.append("\"}")
        }
      }
    }
    writer.append("}")
  }
}
