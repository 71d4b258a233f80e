#include "pipeline/io/remote/address.h"

#include "pipeline/io/remote/http.h"
#include "pipeline/io/remote/remote_scheme.h"
#include "pipeline/io/source_path.h"
#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::remote;

namespace {

Result<Address> parse_address(std::string_view text) {
  BOOST_OUTCOME_TRY(const SourceScheme* const scheme, find_source_scheme(std::string(text)));
  return dynamic_cast<const RemoteScheme&>(*scheme).parse(text);
}

std::string shown(std::string_view text) {
  const auto address = parse_address(text);
  return address ? address.value().text : address.error().what;
}

}  // namespace

TEST_CASE("addresses are distinguished from paths") {
  CHECK(is_address("https://host/a.gguf"));
  CHECK(is_address("hf://org/name"));
  CHECK(is_address("S3://bucket/key"));
  CHECK(is_address("svn+ssh://host"));
  CHECK_FALSE(is_address("models/a.gguf"));
  CHECK_FALSE(is_address("/models://a.gguf"));
  CHECK_FALSE(is_address("://a.gguf"));
  CHECK_FALSE(is_address("a b://c"));
  CHECK_FALSE(is_address(""));
}

TEST_CASE("addresses are parsed and shown in a form that parses again") {
  const auto model = parse_address("hf://org/My-Model_1.5@v1.0/sub folder/a.gguf");
  REQUIRE(model);
  CHECK(model.value().scheme == &hub());
  CHECK(model.value().place == "org/My-Model_1.5");
  CHECK(model.value().revision == "v1.0");
  CHECK(model.value().path == "sub folder/a.gguf");
  CHECK_FALSE(model.value().is_pinned());
  const std::string commit(40, 'a');
  CHECK(model.value().at(commit).is_pinned());
  CHECK(shown(model.value().at(commit).text) == "hf://org/My-Model_1.5@" + commit + "/sub folder/a.gguf");
  CHECK(shown("hf://org/name") == "hf://org/name@main");
  CHECK(shown("hf://models/org/name/") == "hf://org/name@main");
  CHECK(shown("hf://org/name@refs%2Fpr%2F1") == "hf://org/name@refs%2Fpr%2F1");
  const auto bucket = parse_address("s3://my.bucket/a/b c.gguf");
  REQUIRE(bucket);
  CHECK(bucket.value().place == "my.bucket");
  CHECK(bucket.value().path == "a/b c.gguf");
  CHECK(shown("https://host:8080/a%20b.gguf") == "https://host:8080/a%20b.gguf");
  CHECK(percent_encoded("a/b c+~%\xc3\xa4") == "a/b%20c%2B~%25%C3%A4");
}

TEST_CASE("invalid addresses and addresses with secrets are refused without showing the secret") {
  for (const std::string_view text :
       {"https://user:SECRET@host/a.gguf", "https://SECRET@host/a.gguf", "https://host/a.gguf?token=SECRET",
        "https://host/a.gguf#SECRET", "ftp://user:SECRET@host/a", "hf://user:SECRET@org/name",
        "s3://user:SECRET@bucket/a", "hf://org:SECRET@x@y/name", "https://user:SECRET/x@host/a",
        "https://user:a?SECRET@host/a", "https://user:a#SECRET@host/a"}) {
    const auto address = parse_address(text);
    REQUIRE_FALSE(address);
    CHECK(address.error().code == ExitCode::kUsage);
    CHECK(render(address.error()).find("SECRET") == std::string::npos);
  }
  CHECK(shown("https://user:SECRET@host/a") == "the address 'https://...@host/a' contains a user or a password");
  CHECK(shown("ftp://host/a") == "the address 'ftp://host/a' has the unknown scheme 'ftp'");
  for (const std::string_view text : {"hf://",
                                      "hf://org",
                                      "hf://org/",
                                      "hf:///name",
                                      "hf://org/name@",
                                      "hf://org/name@a b",
                                      "hf://org/name/../x",
                                      "hf://org/name//x",
                                      "hf://../name",
                                      "hf://datasets/org/name",
                                      "hf://org/na?me",
                                      "s3://",
                                      "s3://bucket",
                                      "s3://bucket/",
                                      "s3://bucket//a",
                                      "s3://bu?cket/a",
                                      "https://",
                                      "https:///a",
                                      "https://host/a b",
                                      "https://host/\xc3\xa4",
                                      "https://host/a\nb"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_address(text));
  }
  CHECK_FALSE(parse_address("https://host/" + std::string(5000, 'a')));
}

TEST_CASE("an address is shown without what may be secret, and a path as it is") {
  CHECK(without_secrets("out/a?b@c.gguf") == "out/a?b@c.gguf");
  CHECK(without_secrets("hf://org/name@main/a.gguf") == "hf://org/name@main/a.gguf");
  CHECK(without_secrets("https://host:80/a@b") == "https://host:80/a@b");
  CHECK(without_secrets("https://[::1]:80/a@b") == "https://[::1]:80/a@b");
  CHECK(without_secrets("https://u:p@host/a?k=v") == "https://...@host/a");
}

TEST_CASE("the origin of a URL has its port") {
  CHECK(origin_of("https://Host/a?b") == "https://host:443");
  CHECK(origin_of("http://host:8080/a") == "http://host:8080");
  CHECK(origin_of("nothing") == "");
}

TEST_CASE("the name of an address is that of its folder") {
  CHECK(name_of_address("hf://org/Name@main") == "Name");
  CHECK(name_of_address("hf://org/Name@main/sub") == "sub");
  CHECK(name_of_address("https://host/a.gguf") == "a.gguf");
}
