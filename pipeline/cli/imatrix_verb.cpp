// `ggufmill imatrix`: shows, merges and converts importance files.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <optional>

#include "pipeline/api/merge_importance.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"
#include "stages/gguf/gguf.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
namespace json = boost::json;

CommandSpec imatrix_command() {
  CommandSpec spec;
  spec.usage = "ggufmill imatrix (show FILE | merge FILE[=WEIGHT]... --output FILE | convert FILE --output FILE)";
  spec.description =
      "Show, merge, and convert importance matrices of llama-imatrix, as GGUF or in the legacy .dat format. `show` "
      "prints for each entry how many tokens it saw (or chunks, which the legacy format counts) and how its weights "
      "are distributed: entries where a few columns "
      "have most of the weight benefit most from a matrix. `merge` adds files, as llama-imatrix --in-file does, each "
      "multiplied by its WEIGHT. `convert` writes the other format; outputs ending in .dat are in the legacy format.";
  spec.examples =
      "  ggufmill imatrix show imatrix.gguf\n"
      "  ggufmill imatrix merge code.gguf=2 prose.gguf --output imatrix.gguf\n"
      "  ggufmill imatrix convert imatrix.dat --output imatrix.gguf";
  spec.positional = "words";
  spec.many = true;
  spec.words = {"show", "merge", "convert"};
  auto add = spec.options.add_options();
  add("output,o", po::value<std::string>(), "file to write");
  add("chunk-size", po::value<std::uint32_t>(),
      "tokens per chunk, which the legacy format does not store; default: that of the first file, or 512");
  add("overwrite", "replace an existing file");
  add("json",
      "with show: print one JSON object: {file, datasets, chunks, entries: [{name, columns, parts, tokens, "
      "unseen, mean, max, top}]}; the legacy format has chunks for an entry, and null tokens");
  return spec;
}

int show(const std::string& path, bool as_json) {
  const auto described = describe_importance(path, gguf_opener());
  if (!described) return fail(described.error());
  const json::object& file = described.value();
  if (as_json) {
    std::puts(to_json_text(file).c_str());
    return 0;
  }
  const json::array& entries = file.at("entries").as_array();
  const bool counts_tokens = entries.empty() || !entries.front().at("tokens").is_null();
  std::vector<Row> rows;
  for (const json::value& entry : entries) {
    const auto count = [&](const char* key) { return entry.at(key).to_number<std::uint64_t>(); };
    const auto number = [&](const char* key) { return entry.at(key).is_null() ? NAN : entry.at(key).as_double(); };
    rows.push_back({std::string(entry.at("name").as_string()), std::to_string(count("columns")),
                    std::to_string(count("parts")),
                    counts_tokens ? fmt::format("{:.0f}", number("tokens")) : std::to_string(count("chunks")),
                    count("unseen") == 0 ? "" : std::to_string(count("unseen")), fmt::format("{:.3g}", number("mean")),
                    fmt::format("{:.3g}", number("max")), fmt::format("{:.0f} %", 100 * number("top"))});
  }
  std::fputs(render_table({name_column("entry"),
                           {"columns", Align::kRight},
                           {"parts", Align::kRight},
                           {counts_tokens ? "tokens" : "chunks", Align::kRight},
                           {"unseen", Align::kRight},
                           {"mean", Align::kRight},
                           {"max", Align::kRight},
                           {"top 1 %", Align::kRight}},
                          rows)
                 .c_str(),
             stdout);
  std::string datasets;
  for (const json::value& dataset : file.at("datasets").as_array())
    datasets += (datasets.empty() ? "" : ", ") + printable(std::string_view(dataset.as_string()));
  fmt::print("{} entr{}, {} of {}\n", entries.size(), entries.size() == 1 ? "y" : "ies",
             counted(file.at("chunks").to_number<std::uint64_t>(), "chunk"),
             datasets.empty() ? "unnamed text" : datasets);
  return 0;
}

int merge(const Strings& words, const po::variables_map& values) {
  const auto output = text_of(values, "output");
  if (!output) return fail(usage_error("--output is missing", "usage: " + imatrix_command().usage));
  const auto chunk_size =
      values.count("chunk-size") ? std::optional(values["chunk-size"].as<std::uint32_t>()) : std::nullopt;
  if (chunk_size == 0u) return fail(usage_error("--chunk-size must be at least 1"));
  const auto merged = merge_importance(words, *output, chunk_size, values.count("overwrite") > 0, gguf_opener());
  if (!merged) return fail(merged.error());
  for (const std::string& warning : merged.value().warnings) print_warning(warning);
  print_note(
      fmt::format("wrote {}  {} entries, {}", *output, merged.value().entries, human_bytes(merged.value().bytes)));
  return 0;
}

int imatrix_verb(const Parsed& parsed) {
  auto words = parsed.values["words"].as<Strings>();
  const std::string what = words.front();
  words.erase(words.begin());
  if (what == "show" && words.size() == 1) return show(words[0], parsed.values.count("json") > 0);
  if (what == "merge" && !words.empty()) return merge(words, parsed.values);
  if (what == "convert" && words.size() == 1) return merge(words, parsed.values);
  return fail(
      usage_error(fmt::format("invalid arguments: '{}'", printable(what)), "usage: " + imatrix_command().usage));
}

}  // namespace

const Verb kImatrixVerb{"imatrix", OperationGroup::kEdit, "Show, merge, and convert importance matrices",
                        imatrix_command, imatrix_verb};

}  // namespace ggufmill
