import Testing
import VaultCrypto

@Suite struct LegacyDigestTests {
  @Test(arguments: [
    ("", "d41d8cd98f00b204e9800998ecf8427e"), ("abc", "900150983cd24fb0d6963f7d28e17f72"),
    ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
  ])
  func `MD5 has the vectors of RFC 1321`(text: String, digest: String) throws {
    #expect(try LegacyDigest.md5(Array(text.utf8).span.bytes).hexadecimal == digest)
  }

  @Test(arguments: [
    ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
    ),
  ])
  func `SHA-1 has the vectors of RFC 3174`(text: String, digest: String) throws {
    #expect(try LegacyDigest.sha1(Array(text.utf8).span.bytes).hexadecimal == digest)
  }
}
