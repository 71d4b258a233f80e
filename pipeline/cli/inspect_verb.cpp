// `ggufmill inspect`: the metadata and tensors of a GGUF file.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdio>

#include "pipeline/api/reports.h"
#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/table.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

CommandSpec command() {
  CommandSpec spec;
  spec.usage = "ggufmill inspect FILE.gguf [options]";
  spec.description = "Shows the metadata and tensors of a GGUF file, or of a model in shards (give the first).";
  spec.examples =
      "  ggufmill inspect model.gguf\n"
      "  ggufmill inspect model-00001-of-00005.gguf --json";
  spec.positional = "file";
  spec.options.add_options()("kernel-dir", boost::program_options::value<std::vector<std::string>>()->composing(),
                             "a folder with kernel modules that bring types of their own");
  spec.options.add_options()("json", "one JSON object on stdout");
  return spec;
}

void print_text(const Model& model) {
  std::vector<Row> rows;
  for (const MetadataEntry& entry : model.metadata.entries())
    rows.push_back({entry.key, std::string(metadata_type_name(entry.value.type)), describe(entry.value)});
  fmt::print("{} metadata values\n{}\n", rows.size(), render_table({{"key"}, {"type"}, {"value"}}, rows));
  rows.clear();
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : model.tensors) {
    rows.push_back({tensor.name, describe(tensor.shape), std::string(tensor.type->name),
                    with_commas(tensor.source.bytes), with_commas(tensor.source.offset)});
    bytes += tensor.source.bytes;
  }
  const std::uint64_t weights = weights_of(model);
  fmt::print(
      "{} tensors\n{}", rows.size(),
      render_table({{"tensor"}, {"shape"}, {"type"}, {"bytes", Align::kRight}, {"offset", Align::kRight}}, rows));
  fmt::print("{} weights, {}, {:.4f} bits per weight, in {} file{}\n", with_commas(weights), human_bytes(bytes),
             weights ? 8.0 * static_cast<double>(bytes) / static_cast<double>(weights) : 0, model.files.size(),
             model.files.size() == 1 ? "" : "s");
}

json::value value_json(const MetadataValue& value) {
  if (const auto text = as_string(value)) return json_text(*text);
  if (const auto flag = as_bool(value)) return *flag;
  if (const auto whole = as_signed(value)) return *whole;
  if (const auto whole = as_unsigned(value)) return *whole;
  if (const auto number = as_number(value)) {
    if (!std::isfinite(*number)) return json::string(describe(value));  // JSON has no NaN
    return *number;
  }
  json::array items;
  for (const MetadataValue& item : array_items(value)) items.push_back(value_json(item));
  return items;
}

void print_json(const Model& model) {
  json::array metadata;
  for (const MetadataEntry& entry : model.metadata.entries())
    metadata.push_back({{"key", json_text(entry.key)},
                        {"type", metadata_type_name(entry.value.type)},
                        {"value", value_json(entry.value)}});
  json::array tensors;
  for (const Tensor& tensor : model.tensors) {
    json::array shape;
    for (std::uint32_t i = 0; i < tensor.shape.rank; ++i) shape.push_back(tensor.shape.dims[i]);
    tensors.push_back({{"name", json_text(tensor.name)},
                       {"shape", shape},
                       {"type", tensor.type->name},
                       {"bytes", tensor.source.bytes},
                       {"file", tensor.source.file},
                       {"offset", tensor.source.offset}});
  }
  json::array files;
  for (const SourceFile& file : model.files) files.push_back({{"path", json_text(file.path)}, {"bytes", file.bytes}});
  std::puts(json::serialize(json::object{{"files", files}, {"metadata", metadata}, {"tensors", tensors}}).c_str());
}

}  // namespace

int inspect_verb(const Arguments& arguments) {
  const Parsed parsed = parse_command(command(), arguments);
  if (parsed.exit_code) return *parsed.exit_code;
  const auto context = open_context(parsed.values);
  if (!context) return fail(context.error());
  const auto model = context.value().inspect(parsed.values["file"].as<std::string>());
  if (!model) return fail(model.error());
  for (const std::string& warning : model.value().warnings) say_warning(warning);
  if (parsed.values.count("json"))
    print_json(model.value());
  else
    print_text(model.value());
  return 0;
}

}  // namespace ggufmill
