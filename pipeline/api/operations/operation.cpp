#include "pipeline/api/operations/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "pipeline/core/option_reference.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {

Form<std::string> number_as_text() {
  return either<std::string>(
      text(), converted<std::string>(integer(), [](std::uint64_t number) { return std::to_string(number); }));
}

std::string OperationOption::flag() const {
  std::string flag = other_flag.empty() ? name() : other_flag;
  std::ranges::replace(flag, '_', '-');
  return flag;
}

bool OperationOption::is_list() const {
  const auto takes_several = [](const FieldSpec& spec) { return spec.kind == FieldKind::kList; };
  return takes_several(field.spec) || std::ranges::any_of(field.spec.alternatives, takes_several);
}

std::string OperationSpec::verb() const {
  std::string verb(shared ? shared->name : name);
  std::ranges::replace(verb, '_', '-');
  return verb;
}

std::string OperationSpec::command() const { return choice.empty() ? verb() : fmt::format("{} {}", verb(), choice); }

std::string shape_of(const std::vector<ResultMember>& members) {
  std::string text;
  for (const ResultMember& each : members)
    text += (text.empty() ? "" : ", ") + each.name + (each.shape.empty() ? "" : ": " + each.shape);
  return "{" + text + "}";
}

std::vector<ResultMember> operator+(std::vector<ResultMember> members, std::vector<ResultMember> more) {
  std::ranges::move(more, std::back_inserter(members));
  return members;
}

namespace {

boost::json::object members_of(const std::vector<ResultMember>& members, const void* value) {
  boost::json::object object;
  for (const ResultMember& each : members) each.write(value, object);
  return object;
}

}  // namespace

void write_alone(const std::vector<ResultMember>& members, const void* value, const TextSink& sink) {
  sink(to_json_text(members_of(members, value).begin()->value()));
}

void write_members(const std::vector<ResultMember>& members, const void* value, const TextSink& sink) {
  sink(to_json_text(members_of(members, value)));
}

std::vector<std::string> paragraphs_of(const std::string& text) {
  std::vector<std::string> paragraphs;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", at), text.size());
    paragraphs.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return paragraphs;
}

Error cannot_be_together(std::string_view a, std::string_view b, std::string_view why) {
  return usage_error(fmt::format("{} and {} cannot be used together", option_reference(a), option_reference(b)),
                     fmt::format("omit one of them{}{}", why.empty() ? "" : ": ", why));
}

}  // namespace ggufmill
