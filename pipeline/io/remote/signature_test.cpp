#include "pipeline/io/remote/signature.h"

#include "pipeline/core/digest.h"

#include "tests/support/catch.h"

using namespace ggufmill::remote;

namespace {

constexpr std::time_t kTime = 1369353600;  // 2013-05-24 00:00:00 UTC

std::string signature_of(std::string_view method, std::string_view target, const std::vector<std::string>& headers,
                         std::string_view body = "") {
  const SigningKey key{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "", "us-east-1"};
  const std::string url = "https://examplebucket.s3.amazonaws.com" + std::string(target);
  const std::string last = signing_headers(method, url, headers, ggufmill::sha256_hex(body), key, kTime).back();
  return last.substr(last.rfind('=') + 1);
}

}  // namespace

// The examples of "Signature Calculations for the Authorization Header" in the Amazon S3 API Reference.
TEST_CASE("requests have the signatures of Amazon's examples") {
  CHECK(signature_of("GET", "/test.txt", {"Range: bytes=0-9"}) ==
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  CHECK(signature_of("GET", "/?lifecycle=", {}) == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  CHECK(signature_of("GET", "/?max-keys=2&prefix=J", {}) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  CHECK(signature_of("PUT", "/test%24file.text",
                     {"Date: Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class: REDUCED_REDUNDANCY"},
                     "Welcome to Amazon S3.") == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST_CASE("a session token is sent and signed") {
  const SigningKey key{"id", "secret", "token", "eu-west-1"};
  const auto headers = signing_headers("GET", "http://host:9000/a", {}, ggufmill::sha256_hex(""), key, kTime);
  REQUIRE(headers.size() == 5);
  CHECK(headers[0] == "Host: host:9000");
  CHECK(headers[3] == "X-Amz-Security-Token: token");
  CHECK(headers[4].find("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,") !=
        std::string::npos);
}
