// The expected values were computed once by an independent implementation (NumPy).
#include "tests/support/synth.h"

#include <stdexcept>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/sha256.h"

namespace ggufmill {
namespace {

struct Figure {
  const char* distribution;
  std::uint64_t seed, start, count;
  const char* sha256;
};

// clang-format off
constexpr Figure kFigures[] = {
    {"normal", 2024u, 0, 4096, "2e7f02aba11005cdb651f3e41722a99f1f124e99d9c0aac8b672634e319eb3c3"},
    {"normal", 18446744073709551615u, 1000003, 777, "45f78116abda83f90c749e8626eb70be465478de9e4b93c27b885dc189360c7d"},
    {"outliers", 2024u, 0, 4096, "06390de89af79af58f96e6a115c8ca0dd0980b1d9ea9df2ed6314a23ee34c950"},
    {"outliers", 18446744073709551615u, 1000003, 777, "1d26c0af240f0981587356966f78c896433183f3b07714055ec883f408b3aa19"},
    {"cubed", 2024u, 0, 4096, "a42e0bf9a46d101ed03b55a5f506d4a289a656cf346e8b21b7aba838506fbcb3"},
    {"cubed", 18446744073709551615u, 1000003, 777, "42c37b7d6f5402104e0c13095ff7cfb7991bc6dcec748419d255b2c58afb4d44"},
    {"positive", 2024u, 0, 4096, "1fe4d0f37528073d0b606f27b5ce62ae8e2e1e0bcfd25ac1165c6704b95b0838"},
    {"positive", 18446744073709551615u, 1000003, 777, "3f6739cc361f8099087734f4903a47bf6ae0b503408b4a250dcf296c2f578bd4"},
    {"sparse", 2024u, 0, 4096, "362bf09d2d5da92fbf9769da7cdc9372280f07828fc7d04d3235508cf4630aa7"},
    {"sparse", 18446744073709551615u, 1000003, 777, "5d34522fd55a3aa8103324ad7cd0b28ce424b09f8c64b7681e2fbc6d1981901a"},
    {"steps", 2024u, 0, 4096, "2b67edeb96470aef2c670c586cd885aaf5fd617f7ef2a93fe0743ba00d3b23a9"},
    {"steps", 18446744073709551615u, 1000003, 777, "8114e0a4d87af1d583b7cf72d0a4f9e0ee71ea1222e5e3693cc684f0f086adeb"},
    {"tiny", 2024u, 0, 4096, "3109cdc17e1f255bd2845d33fe7720b3a9a4fa727a6dbd47598f5abd5daaa53b"},
    {"tiny", 18446744073709551615u, 1000003, 777, "3888ce33c991cdfb63c813177d5183b82404e20daee051fa4a28216b88687aa1"},
    {"large", 2024u, 0, 4096, "a4d1aae763d0b30f7e12fd132e2b2b0aa2aaa7eb4244b867c2c7bb3b0ec0f360"},
    {"large", 18446744073709551615u, 1000003, 777, "bbcf0e7d47fae7d5ef005dceb3aad47c03bcf9938e6a3acb4105c842d7c49a16"},
    {"norm", 2024u, 0, 4096, "cd897a15982181e644d24ccf4064494dacdb5c1507a6c7e29953f09a24c20b36"},
    {"norm", 18446744073709551615u, 1000003, 777, "11a5134998d579a0b46314f3ccd0dc9b55ef9564760346afea010d9e9521c7cf"},
    {"constant", 2024u, 0, 4096, "28930fe0ecb663c03181aeb3b6e02cfb475e8773e73bc012b069a3ae462be1c7"},
    {"constant", 18446744073709551615u, 1000003, 777, "ae237880564ac8989d0b550c89bc90bb5ce6ab0190f334bc84652248306e930a"},
    {"spikes", 2024u, 0, 4096, "3050ce594751128bb4efffd3b7cc13bf5d9ac5f5f0a79385a63df02428707ea1"},
    {"spikes", 18446744073709551615u, 1000003, 777, "2b1897d83d3fa493aff8626d62ac46175eb92e462fad12e23e43029a897e8765"},
    {"decades", 2024u, 0, 4096, "92e0e632e50893459e66d8d75703971ac1aa9d461923e09516e6ed362c4c09b4"},
    {"decades", 18446744073709551615u, 1000003, 777, "9a80152b1def85c3ac8be880cc49160b99521c4a77f64fea36b12ca1864f3ae8"},
    {"negative", 2024u, 0, 4096, "63d4e3aaeed426b521db4a52cf986b47705456ccc53d3ec6df83bd98f2734820"},
    {"negative", 18446744073709551615u, 1000003, 777, "7321e3ef3583b47c3ce0bd76239d665ad3cc037a427b488b1b47269a047eba7d"},
    {"gaps", 2024u, 0, 4096, "295280b773b16abbf14f801c9b9ac955a9f1d87abdfef3b65f6b9814d3df7ca6"},
    {"gaps", 18446744073709551615u, 1000003, 777, "dbdc60cc80ade2f1093942bcd787a809b392d4a28a35da801b3cb4ab792ebef9"},
};
// clang-format on

std::string digest(const std::vector<float>& values) { return sha256_hex(std::as_bytes(std::span(values))); }

TEST_CASE("every distribution has the bytes of its definition") {
  for (const Figure& figure : kFigures) {
    CAPTURE(figure.distribution, figure.seed, figure.start);
    CHECK(digest(synth::values(figure.distribution, figure.seed, figure.start, figure.count)) == figure.sha256);
  }
}

TEST_CASE("importance weights have the bytes of their definition") {
  CHECK(digest(synth::importance(71, 1024)) == "7bd88246bec524d17065b82558762c33026ab7acc87d4ef04b1220de9115ac6d");
  CHECK(digest(synth::importance(9, 33)) == "cbcf62a7e49eb8cb4ca41b3fdf5c972bd847bbe449a4947dc958b887d8730004");
  CHECK(digest(synth::importance(71, 1024, "one-in-16")) ==
        "2c41be2d74e24c0c3fdb7cc7df7388fb707d88a5174717ce436549fb63439ce3");
  CHECK(digest(synth::importance(71, 1024, "one-in-256")) ==
        "8097660052b6d3d82d511159cad3ca941f627291ac4197f162213537d6271a70");
  CHECK(digest(synth::importance(71, 1024, "wide")) ==
        "5f686e08ace9897349ae75b2a86a5aaee9142cadc79f91da3e2a3e58a7813d50");
  CHECK(digest(synth::importance(71, 1024, "zero")) ==
        "ad7facb2586fc6e966c004d7d1d16b024f5805ff7cb47c7a85dabd8b48892ca7");
}

TEST_CASE("pieces of a sequence join to the whole") {
  const auto whole = synth::values("steps", 5, 0, 100);
  auto joined = synth::values("steps", 5, 0, 45);
  const auto rest = synth::values("steps", 5, 45, 55);
  joined.insert(joined.end(), rest.begin(), rest.end());
  CHECK(joined == whole);
}

TEST_CASE("an unknown distribution is refused") {
  CHECK_THROWS_AS(synth::distribution_named("gaussian"), std::invalid_argument);
}

TEST_CASE("an unknown kind of importance is refused") {
  CHECK_THROWS_AS(synth::importance(1, 1, "some"), std::invalid_argument);
}

TEST_CASE("SHA-256 of the standard's example") {
  const std::string text = "abc";
  CHECK(sha256_hex(std::as_bytes(std::span(text))) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace ggufmill
