#include "pipeline/call/json_call.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/given_options.h"
#include "pipeline/call/operations.h"
#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

Result<const OperationSpec*> operation_named(std::string_view name) {
  std::vector<std::string> names;
  for (const OperationSpec& each : operations()) {
    if (each.name == name) return &each;
    names.emplace_back(each.name);
  }
  const std::string meant = did_you_mean(name, names);
  return usage_error(fmt::format("unknown operation {}", quoted_name(name)),
                     meant.empty() ? "" : fmt::format("did you mean '{}'?", meant));
}

// Replaces the surrogates U+DC80 to U+DCFF, which the parser has put into three bytes, with the bytes that they stand
// for.
void restore_bytes(json::value& value) {
  if (json::object* const members = value.if_object())
    for (auto& member : *members) restore_bytes(member.value());
  if (json::array* const items = value.if_array())
    for (json::value& item : *items) restore_bytes(item);
  json::string* const text = value.if_string();
  for (std::size_t at = 0; text && (at = text->find("\xed", at)) != text->npos; ++at) {
    if (at + 2 >= text->size()) return;
    const auto second = static_cast<unsigned char>((*text)[at + 1]),
               third = static_cast<unsigned char>((*text)[at + 2]);
    if (second == 0xb2 || second == 0xb3)
      text->replace(at, 3, std::string(1, static_cast<char>(((second & 0x03) << 6) | (third & 0x3f))));
  }
}

}  // namespace

Result<json::object> request_of(std::string_view request) {
  if (request.empty()) return json::object{};
  auto parsed = parse_checkpoint_json("options", request);
  if (!parsed) {
    Error error = parsed.error();
    error.code = ExitCode::kUsage;
    return error;
  }
  if (!parsed.value().is_object())
    return Error{ExitCode::kUsage, "options", "not a JSON object", "", "for example {\"overwrite\": true}"};
  restore_bytes(parsed.value());
  return std::move(parsed).value().as_object();
}

Result<CalledOperation> call_operation(const Context& context, std::string_view name, std::string_view request,
                                       Caller caller, const Call& call) {
  BOOST_OUTCOME_TRY(const json::object members, request_of(request));
  return call_operation(context, name, members, caller, call);
}

Result<CalledOperation> call_operation(const Context& context, std::string_view name, const json::object& members,
                                       Caller caller, const Call& call) {
  BOOST_OUTCOME_TRY(const OperationSpec* const operation, operation_named(name));
  std::vector<OperationOption> named = operation->options;
  for (OperationOption& each : context_options(operation->context)) named.push_back(std::move(each));
  GivenOptions given(OptionNames(caller, std::move(named)));
  BOOST_OUTCOME_TRY(add_members(members, operation->options, given));
  BOOST_OUTCOME_TRY(const auto read, read_request(*operation, given, context.kernels().types()));
  json::array warnings;
  Call collecting = call;
  collecting.warn = [&](const std::string& warning) { warnings.emplace_back(given.names().in_message(warning)); };
  const auto answer = operation->run(context, read.get(), collecting);
  if (!answer) return given.names().in_error(answer.error());
  CalledOperation called;
  operation->write(answer.value().value.get(), [&](std::string_view piece) { called.json += piece; });
  const std::size_t end = called.json.rfind('}');
  called.json.insert(end, fmt::format("{}\"warnings\":{}", called.json == "{}" ? "" : ",", to_json_text(warnings)));
  if (answer.value().failure && !answer.value().value_shows_failure)
    called.failure = given.names().in_error(*answer.value().failure);
  return called;
}

}  // namespace ggufmill
