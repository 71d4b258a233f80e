// Roles of containers and instances, whose keys a service of the machine itself gives.

#include <fmt/format.h>

#include "pipeline/core/text.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/io/remote/aws_sources.h"
#include "pipeline/io/remote/credentials.h"
#include "pipeline/io/remote/server_text.h"

namespace ggufmill::remote {
namespace {

// An address to which a token may be sent without encryption: that of this machine, or of the agents of containers.
bool is_own_agent(const UrlPlace& place) {
  return is_this_machine(place) || place.host == "169.254.170.2" || place.host == "169.254.170.23" ||
         place.host == "[fd00:ec2::23]";
}

std::string instance_service() {
  std::string url = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  while (url.ends_with('/')) url.pop_back();
  if (!url.empty()) return url;
  return lower_case(environment("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")) == "ipv6" ? "http://[fd00:ec2::254]"
                                                                                     : "http://169.254.169.254";
}

}  // namespace

Found of_container(const Chain& chain) {
  const std::string from = "the role of the container";
  std::string url = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const std::string path = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !path.empty())
    url = "http://169.254.170.2" + path;
  if (url.empty()) return std::nullopt;
  const auto place = place_of_url(url);
  if (!place || (place->scheme != "https" && !is_own_agent(*place)))
    return usage_error("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of this machine",
                       "a token must not be sent to another machine in the clear");
  std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
    BOOST_OUTCOME_TRY(const std::string text, text_of_file(file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"));
    token = trimmed(text);
  }
  Request request = place->scheme == "https" ? request_to(url, chain) : nearby_request(url, chain);
  if (!token.empty()) {
    remember_secret(token);
    request.headers = {"Authorization: " + token};
  }
  const Said said = ask(request);
  if (!said.is_ok()) return failed(from, said, "check the container's role");
  return key_of_answer(said, from);
}

Found of_instance(const Chain& chain) {
  if (lower_case(environment("AWS_EC2_METADATA_DISABLED")) == "true") return std::nullopt;
  const std::string from = "the role of the instance", service = instance_service();
  const std::string roles = service + "/latest/meta-data/iam/security-credentials/";
  Request session = nearby_request(service + "/latest/api/token", chain);
  session.method = "PUT";
  session.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
  RequestBody nothing{0, std::string(kUnsignedBody), [](std::uint64_t, std::span<std::byte>) { return true; }};
  session.body = &nothing;
  const Said token = ask(session, 2);
  if (token.is_busy()) return failed(from, token, "try again later");
  if (!token.is_ok()) return std::nullopt;  // not an instance
  remember_secret(trimmed(token.text));
  const std::string header = fmt::format("X-aws-ec2-metadata-token: {}", trimmed(token.text));
  const auto get = [&](std::string url) {
    Request request = nearby_request(std::move(url), chain);
    request.headers = {header};
    return ask(request);
  };
  const Said names = get(roles);
  if (names.answer.status == 404 || (names.is_ok() && trimmed(names.text).empty())) return std::nullopt;  // no role
  if (!names.is_ok()) return failed(from, names, "check the instance's role");
  const std::string name(trimmed(std::string_view(names.text).substr(0, names.text.find('\n'))));
  const Said said = get(roles + percent_encoded(name));
  if (!said.is_ok()) return failed(from, said, "check the instance's role");
  return key_of_answer(said, from);
}

}  // namespace ggufmill::remote
