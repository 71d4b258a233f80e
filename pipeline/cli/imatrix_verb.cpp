// `ggufmill imatrix`: shows, merges and converts importance files.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "pipeline/api/merge_importance.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"
#include "stages/gguf/gguf.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
namespace json = boost::json;
using Strings = std::vector<std::string>;

CommandSpec imatrix_command() {
  CommandSpec spec;
  spec.usage = "ggufmill imatrix (show FILE | merge FILE[=WEIGHT]... --output FILE | convert FILE --output FILE)";
  spec.description =
      "Show, merge, and convert importance matrices of llama-imatrix, as GGUF or in the legacy .dat format. `show` "
      "prints for each entry how many tokens it saw and how its weights are distributed: entries where a few columns "
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
      "unseen, mean, max, top}]}");
  return spec;
}

// The values shown for an entry, computed from its weights.
struct Shown {
  std::uint64_t columns = 0, parts = 0, unseen = 0;  // unseen: parts without any tokens
  double tokens = 0;                                 // of all parts; in the legacy format, calls
  double mean = 0, max = 0;
  double top = 0;  // share of the sum held by the largest 1 % of the columns
};

Result<Shown> look_at(const ImportanceEntry& entry) {
  Shown shown;
  shown.parts = std::max<std::uint64_t>(1, entry.counts.count);
  shown.columns = entry.size() / shown.parts;
  shown.tokens = entry.calls;
  if (entry.counts.count != 0) {
    std::vector<float> counts(entry.counts.count);
    BOOST_OUTCOME_TRY(entry.counts.read(0, counts));
    for (const float count : counts) shown.tokens += count;
    shown.unseen = static_cast<std::uint64_t>(std::ranges::count(counts, 0.0f));
  }
  // Computing the share needs all weights of a part in memory. Parts are rows of one matrix, which every user of the
  // entry holds in memory anyway.
  double sum = 0, top = 0;
  std::vector<float> weights(shown.columns);
  for (std::uint64_t part = 0; part < shown.parts; ++part) {
    BOOST_OUTCOME_TRY(entry.weights(part * shown.columns, weights));
    for (const float weight : weights) sum += weight;
    const auto few = static_cast<std::ptrdiff_t>((shown.columns + 99) / 100);
    std::ranges::nth_element(weights, weights.begin() + few - 1, std::ranges::greater());
    for (std::ptrdiff_t i = 0; i < few; ++i) top += weights[static_cast<std::size_t>(i)];
    shown.max = std::max(shown.max, static_cast<double>(*std::max_element(weights.begin(), weights.begin() + few)));
  }
  shown.mean = sum / static_cast<double>(entry.size());
  shown.top = sum > 0 ? top / sum : 0;
  return shown;
}

int show(const std::string& path, bool as_json) {
  const auto file = open_importance(path, gguf_opener());
  if (!file) return fail(file.error());
  std::vector<Row> rows;
  json::array entries;
  for (const ImportanceEntry& entry : file.value().entries) {
    const auto looked = look_at(entry);
    if (!looked) return fail(looked.error());
    const Shown& it = looked.value();
    if (as_json)
      entries.push_back(json::object{{"name", entry.name},
                                     {"columns", it.columns},
                                     {"parts", it.parts},
                                     {"tokens", it.tokens},
                                     {"unseen", it.unseen},
                                     {"mean", json_number(it.mean)},
                                     {"max", json_number(it.max)},
                                     {"top", json_number(it.top)}});
    else
      rows.push_back({entry.name, fmt::format("{}", it.columns), fmt::format("{}", it.parts),
                      fmt::format("{:.0f}", it.tokens), it.unseen == 0 ? "" : fmt::format("{}", it.unseen),
                      fmt::format("{:.3g}", it.mean), fmt::format("{:.3g}", it.max),
                      fmt::format("{:.0f} %", 100 * it.top)});
  }
  if (as_json) {
    json::array datasets;
    for (const std::string& dataset : file.value().datasets) datasets.push_back(json::string(dataset));
    std::puts(to_json_text(json::object{{"file", path},
                                        {"datasets", std::move(datasets)},
                                        {"chunks", file.value().chunks},
                                        {"entries", std::move(entries)}})
                  .c_str());
    return 0;
  }
  std::fputs(render_table({name_column("entry"),
                           {"columns", Align::kRight},
                           {"parts", Align::kRight},
                           {"tokens", Align::kRight},
                           {"unseen", Align::kRight},
                           {"mean", Align::kRight},
                           {"max", Align::kRight},
                           {"top 1 %", Align::kRight}},
                          rows)
                 .c_str(),
             stdout);
  std::string datasets;
  for (const std::string& dataset : file.value().datasets)
    datasets += (datasets.empty() ? "" : ", ") + printable(dataset);
  fmt::print("{} entries, {} chunks of {}\n", file.value().entries.size(), file.value().chunks,
             datasets.empty() ? "unnamed text" : datasets);
  return 0;
}

// Parses "FILE" or "FILE=WEIGHT". If a file with that exact name exists, the word is a file name.
Result<MergePart> part_of(const std::string& word) {
  const std::size_t at = word.rfind('=');
  double weight = 1;
  std::string path = word;
  if (at != std::string::npos) {
    const auto read = std::from_chars(word.data() + at + 1, word.data() + word.size(), weight);
    if (read.ec != std::errc() || read.ptr != word.data() + word.size() || !std::isfinite(weight) || weight <= 0)
      return usage_error(fmt::format("{} has no weight above 0 after '='", quoted_name(word)), "for example a.gguf=2");
    path = word.substr(0, at);
  }
  BOOST_OUTCOME_TRY(ImportanceFile file, open_importance(path, gguf_opener()));
  return MergePart{std::move(file), weight};
}

int merge(const Strings& words, const po::variables_map& values) {
  const auto output = text_of(values, "output");
  if (!output) return fail(usage_error("--output is missing", "usage: " + imatrix_command().usage));
  std::vector<MergePart> parts;
  for (const std::string& word : words) {
    auto part = part_of(word);
    if (!part) return fail(part.error());
    parts.push_back(std::move(part).value());
  }
  MergeOptions options{.output = *output};
  if (output->ends_with(".dat")) options.format = ImportanceFormat::kLegacy;
  for (const MergePart& part : parts) {
    if (part.file.chunk_size == 0) continue;
    options.chunk_size = part.file.chunk_size;
    break;
  }
  options.chunk_size = value_or<std::uint32_t>(values, "chunk-size", options.chunk_size);
  if (options.chunk_size == 0) return fail(usage_error("--chunk-size must be at least 1"));
  options.overwrite = values.count("overwrite") > 0;
  const auto merged = merge_importance(parts, options);
  if (!merged) return fail(merged.error());
  for (const std::string& warning : merged.value().warnings) say_warning(warning);
  say_note(fmt::format("wrote {}  {} entries, {}", *output, merged.value().entries, human_bytes(merged.value().bytes)));
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

const Verb kImatrixVerb{"imatrix", VerbGroup::kEdit, "Show, merge, and convert importance matrices", imatrix_command,
                        imatrix_verb};

}  // namespace ggufmill
