#include "pipeline/io/child_environment.h"

#include <algorithm>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/environment.h"

using namespace ggufmill;

namespace {

std::string value_of(const Variables& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, [](const auto& each) { return each.first; });
  return found == all.end() ? "(none)" : found->second;
}

}  // namespace

TEST_CASE("tokens, keys, and what else grants access are secrets") {
  for (const char* name :
       {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_TOKEN", "HF_API_TOKEN", "HUGGINGFACEHUB_API_TOKEN",
        "HUGGINGFACE_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "hf_token"}) {
    CAPTURE(name);
    CHECK(is_secret_variable(name, "x"));
  }
}

TEST_CASE("names of servers, and paths of files with secrets, are none") {
  for (const char* name : {"HF_ENDPOINT", "HF_TOKEN_PATH", "HF_HOME", "AWS_REGION", "AWS_PROFILE", "AWS_CONFIG_FILE",
                           "AWS_SHARED_CREDENTIALS_FILE", "PATH", "HOME", "MY_HF_TOKEN_OF_NOTHING"}) {
    CAPTURE(name);
    CHECK_FALSE(is_secret_variable(name, "x"));
  }
}

TEST_CASE("the address of a proxy is a secret if it has a password") {
  CHECK(is_secret_variable("https_proxy", "http://me:password@proxy:3128"));
  CHECK_FALSE(is_secret_variable("HTTPS_PROXY", "http://proxy:3128"));
}

TEST_CASE("a program gets no secret of this process") {
  const Environment token(kHubTokenVariable, "secret"), plain("GGUFMILL_TEST", "plain");
  const Variables all = child_environment({});
  CHECK(value_of(all, kHubTokenVariable) == "(none)");
  CHECK(value_of(all, "GGUFMILL_TEST") == "plain");
}

TEST_CASE("a program gets the secrets that it is given or that are kept for it") {
  const Environment token(kHubTokenVariable, "secret");
  CHECK(value_of(child_environment({}, Secrets::kKeep), kHubTokenVariable) == "secret");
  CHECK(value_of(child_environment({{kHubTokenVariable, "other"}}), kHubTokenVariable) == "other");
}

TEST_CASE("an added variable takes the place of one of this process") {
  const Environment old("GGUFMILL_TEST", "old");
  const Variables all = child_environment({{"GGUFMILL_TEST", "new"}});
  CHECK(value_of(all, "GGUFMILL_TEST") == "new");
  CHECK(std::ranges::count(all, "GGUFMILL_TEST", [](const auto& each) { return each.first; }) == 1);
}
