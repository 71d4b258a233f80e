#include "pipeline/io/remote/server_text.h"

#include "tests/support/catch.h"

using namespace ggufmill::remote;

TEST_CASE("texts of servers are shown without the secrets of the process") {
  remember_secret("SeCrEt/0123456789+abcdef");
  for (const std::string text :
       {"tok SeCrEt/0123456789+abcdef!", "tok secret/0123456789+ABCDEF", "SeCrEt%2F0123456789%2Babcdef",
        "secret%2f0123456789%2babcdef", "cut off: SeCrEt/0123456", "'0123456789'"}) {
    CAPTURE(text);
    CHECK(masked(text).find("23456") == std::string::npos);
  }
  CHECK(masked("bad SeCrEt/0123456789+abcdef here") == "bad ... here");
  CHECK(has_secret("f-SeCrEt/0123456789+abcdef"));
  CHECK_FALSE(has_secret("0123456789"));
  // A secret at the end of what is shown is masked, not cut off.
  const std::string long_text = std::string(195, 'x') + " SeCrEt/0123456789+abcdef";
  CHECK(quoted_answer(long_text).find("SeCr") == std::string::npos);
  CHECK(quoted_answer("a\nb") == "'a\\x0ab'");
}

TEST_CASE("a short secret is masked as a word only") {
  remember_secret("Zq");
  CHECK(masked("key Zq.") == "key ....");
  CHECK(masked("aZqb") == "aZqb");
}

TEST_CASE("texts of servers are shown without what looks like a secret") {
  for (const std::string text :
       {"token hf_abcdefghijSECRET", "Authorization: Bearer abcdefghijklmSECRET", "Basic dXNlcjpwYXNzSECRET==",
        "AWS4-HMAC-SHA256 Credential=SECRET/20260101/x, Signature=SECRET", "see https://user:SECRET@host/a",
        "see https://host/a?X=SECRET&b=SECRET", "X-Amz-Signature=SECRET&x=1", "?sig=SECRET", "Signature%3DSECRET",
        "{\"access_token\": \"abcdefghijklmnSECRET\"}", "<SecretKey>abcdefghijklmnSECRET</SecretKey>"}) {
    CAPTURE(text);
    CHECK(masked(text).find("SECRET") == std::string::npos);
  }
  for (const std::string text : {"the token: it has expired", "Basic auth is not supported", "You may not write here",
                                 "signature: invalid", "https://host/a/b", "NoSuchBucket"})
    CHECK(masked(text) == text);
}
