#include "pipeline/core/digest.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("digests of a text are those of their standards") {
  const auto digest_of = [](DigestKind kind) {
    Digest digest(kind);
    for (const std::string_view letter : {"a", "b", "c"}) digest.add(letter);
    return digest.hex();
  };
  CHECK(digest_of(DigestKind::kMd5) == "900150983cd24fb0d6963f7d28e17f72");           // RFC 1321, A.5
  CHECK(digest_of(DigestKind::kSha1) == "a9993e364706816aba3e25717850c26c9cd0d89d");  // FIPS 180-1, A
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("Base64 is that of RFC 4648") {
  CHECK(base64_of("").empty());
  CHECK(base64_of("f") == "Zg==");
  CHECK(base64_of("fo") == "Zm8=");
  CHECK(base64_of("foobar") == "Zm9vYmFy");
  for (const std::string_view text : {"", "f", "fo", "foobar"}) CHECK(bytes_of_base64(base64_of(text)) == text);
  for (const std::string_view wrong : {"Zg", "Zg=", "Z===", "====", " Zg=", "Zm9=YmFy", "Zg==Zg==", "Zm9v\nYmFy"})
    CHECK(!bytes_of_base64(wrong));
}
