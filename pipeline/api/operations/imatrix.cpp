// `imatrix_show`, `imatrix_merge`, `imatrix_convert`: show, add up, and convert importance matrices.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/merge_importance.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"
#include "stages/gguf/gguf.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr SharedVerb kImatrixVerb{
    .name = "imatrix",
    .summary = "Show, merge, and convert importance matrices",
    .description =
        "Show, merge, and convert importance matrices of llama-imatrix, as GGUF or in the legacy .dat format. `show` "
        "prints for each entry how many tokens it saw (or chunks, which the legacy format counts) and how its weights "
        "are distributed: entries where a few columns have most of the weight benefit most from a matrix. `merge` adds "
        "files, as llama-imatrix --in-file does, each multiplied by its WEIGHT. `convert` writes the other format; "
        "outputs ending in .dat are in the legacy format. Covariance files of ggufmill-calibrate are shown and merged "
        "in "
        "the same way; `convert` makes ordinary importance matrices of them.",
    .examples =
        "  ggufmill imatrix show imatrix.gguf\n"
        "  ggufmill imatrix merge code.gguf=2 prose.gguf --output imatrix.gguf\n"
        "  ggufmill imatrix convert imatrix.dat --output imatrix.gguf",
    .usage = "(show FILE | merge FILE[=WEIGHT]... --output FILE | convert FILE --output FILE)"};

ModelOpener opener_of(const Context& context) { return gguf_opener(context.kernels().types()); }

// ---- show ----

struct ImatrixRequest {
  std::string path{};
};

Result<Answer<DescribedImportance>> run_show(const Context& context, const ImatrixRequest& request, const Call&) {
  BOOST_OUTCOME_TRY(DescribedImportance described, describe_importance(request.path, opener_of(context)));
  return Answer<DescribedImportance>{std::move(described)};
}

std::string describe_covariance(const DescribedCovariance& covariance) {
  std::size_t tensors = 0;
  double least = 1, most = 0;
  std::uint64_t held_out = 0;
  for (const DescribedInput& input : covariance.inputs) {
    tensors += input.tensors.size();
    least = std::min(least, input.rms);
    most = std::max(most, input.rms);
    held_out = std::max(held_out, input.held_out);
  }
  return fmt::format("covariances of {} of {}, {}; rms correlation {:.3f} to {:.3f}{}\n",
                     counted(covariance.inputs.size(), "input"), counted(tensors, "tensor"),
                     covariance.block == 0 ? "all columns" : fmt::format("in blocks of {} columns", covariance.block),
                     least, most, held_out == 0 ? "" : fmt::format("; {} held-out vectors of each", held_out));
}

json::object json_of(const DescribedCovariance& covariance) {
  json::array inputs;
  for (const DescribedInput& input : covariance.inputs)
    inputs.push_back(json::object{{"name", input.name},
                                  {"tensors", json::value_from(input.tensors)},
                                  {"columns", input.columns},
                                  {"experts", input.experts},
                                  {"pooled", input.is_pooled},
                                  {"rms", json_number(input.rms)},
                                  {"held_out", input.held_out}});
  return {{"block", covariance.block}, {"inputs", std::move(inputs)}};
}

void print_importance(const DescribedImportance& file, TextOutput& to) {
  const bool counts_tokens = file.entries.empty() || file.entries.front().tokens;
  to.table = Table{{name_column("entry"),
                    {"columns", Align::kRight},
                    {"parts", Align::kRight},
                    {counts_tokens ? "tokens" : "chunks", Align::kRight},
                    {"unseen", Align::kRight},
                    {"mean", Align::kRight},
                    {"max", Align::kRight},
                    {"top 1 %", Align::kRight}},
                   {}};
  for (const DescribedEntry& it : file.entries)
    to.table->rows.push_back({it.name, std::to_string(it.columns), std::to_string(it.parts),
                              counts_tokens ? fmt::format("{:.0f}", it.tokens.value_or(0)) : std::to_string(it.chunks),
                              it.unseen == 0 ? "" : std::to_string(it.unseen), fmt::format("{:.3g}", it.mean),
                              fmt::format("{:.3g}", it.max), fmt::format("{:.0f} %", 100 * it.top)});
  std::string datasets;
  for (const std::string& dataset : file.datasets) datasets += (datasets.empty() ? "" : ", ") + printable(dataset);
  to.out = fmt::format("{} entr{}, {} of {}\n", file.entries.size(), file.entries.size() == 1 ? "y" : "ies",
                       counted(file.chunks, "chunk"), datasets.empty() ? "unnamed text" : datasets);
  if (file.covariance) to.out += describe_covariance(*file.covariance);
}

ResultForm<DescribedImportance> importance_result() {
  using Entry = DescribedEntry;
  const auto number = [](std::string_view name, double Entry::*member, std::string_view doc) {
    return result<Entry>(
        name, [member](const Entry& it) { return std::optional(json_number(it.*member)); }, doc);
  };
  const auto tokens = [](const Entry& it) {
    return std::optional(it.tokens ? json::value(*it.tokens) : json::value());
  };
  const auto chunks = [](const Entry& it) { return it.tokens ? std::nullopt : std::optional(json::value(it.chunks)); };
  const ResultForm<Entry> entry{
      {result("name", &Entry::name, "name of the tensor"), result("columns", &Entry::columns, "weights of a part"),
       result("parts", &Entry::parts, "number of experts, or 1"),
       result<Entry>("tokens", tokens, "tokens that all parts saw"),
       result("unseen", &Entry::unseen, "parts that saw none"), number("mean", &Entry::mean, "mean of the weights"),
       number("max", &Entry::max, "the largest weight"),
       number("top", &Entry::top, "share of the largest 1 % of the columns"),
       result<Entry>("chunks", chunks, "chunks that it saw, in the legacy format")}};
  using File = DescribedImportance;
  return {{result("file", &File::file, "path of the file"),
           result("datasets", &File::datasets, "names of the texts that were used"),
           result("chunks", &File::chunks, "number of chunks of text"),
           result("entries", &File::entries, entry,
                  "the matrices; the legacy format has `chunks` of an entry, and null for `tokens`"),
           result<File>(
               "covariance",
               [](const File& it) {
                 return it.covariance ? std::optional(json::value(json_of(*it.covariance))) : std::nullopt;
               },
               "of a covariance file: {block, inputs: [{name, tensors, columns, experts, pooled, rms, held_out}]}")}};
}

// ---- merge and convert ----

struct OutputRequest {
  std::string output{};
  std::optional<std::uint32_t> chunk_size{};
  bool overwrite = false;
};

struct MergeImportanceRequest : OutputRequest {
  std::vector<std::string> inputs{};
};

struct ConvertImportanceRequest : OutputRequest {
  std::string path{};
};

struct MergedFile : Merged {
  std::string output;
};

Result<Answer<MergedFile>> merge(const Context& context, const OutputRequest& request,
                                 const std::vector<std::string>& inputs, Covariances covariances, const Call& call) {
  BOOST_OUTCOME_TRY(Merged merged, merge_importance(inputs, request.output, request.chunk_size, request.overwrite,
                                                    opener_of(context), covariances));
  call.warn_all(merged.warnings);
  return Answer<MergedFile>{{std::move(merged), request.output}};
}

void print_merged(const MergedFile& file, TextOutput& to) {
  to.notes.push_back({fmt::format("wrote {}  {} entries, {}", file.output, file.entries, human_bytes(file.bytes))});
}

std::vector<Option<OutputRequest>> written_file_options() {
  using Request = OutputRequest;
  return {option("output", &Request::output, path(), "file to write; if it ends in .dat, in the legacy format")
              .required("FILE")
              .short_flag('o'),
          option("chunk_size", &Request::chunk_size, integer<std::uint32_t>().at_least(1),
                 "tokens per chunk, which the legacy format does not store; default: that of the first file, or 512")
              .or_zero(),
          option("overwrite", &Request::overwrite, "replace an existing file")};
}

ResultForm<MergedFile> merged_result() {
  const auto number = [](std::string_view name, std::uint64_t Merged::*member, std::string_view doc) {
    return result<MergedFile>(
        name, [member](const MergedFile& it) { return std::optional(json::value(it.*member)); }, doc);
  };
  return {
      {number("entries", &Merged::entries, "number of matrices"), number("bytes", &Merged::bytes, "size of the file")}};
}

}  // namespace

OperationSpec imatrix_show_operation() {
  return operation(OperationOf<ImatrixRequest, DescribedImportance>{
      .name = "imatrix_show",
      .group = OperationGroup::kEdit,
      .summary = "Show an importance matrix",
      .description =
          "Show for each entry of an importance matrix of llama-imatrix, GGUF or legacy .dat, how many tokens it saw "
          "and "
          "how its weights are distributed: entries where a few columns have most of the weight benefit most from a "
          "matrix.",
      .shared = &kImatrixVerb,
      .choice = "show",
      .options = {option("path", &ImatrixRequest::path, path(), "the importance matrix").word("FILE")},
      .result = importance_result(),
      .context = ContextUse::kNone,
      .run = run_show,
      .print = print_importance});
}

OperationSpec imatrix_merge_operation() {
  using Request = MergeImportanceRequest;
  return operation(OperationOf<Request, MergedFile>{
      .name = "imatrix_merge",
      .group = OperationGroup::kEdit,
      .summary = "Merge importance matrices",
      .description =
          "Add importance matrices of llama-imatrix, as llama-imatrix --in-file does, each multiplied by its "
          "weight; or covariance files of ggufmill-calibrate, to one of all their texts.",
      .shared = &kImatrixVerb,
      .choice = "merge",
      .options = std::vector<Option<Request>>{option("inputs", &Request::inputs, list_of(text()),
                                                     "files to add, each as FILE or FILE=WEIGHT")
                                                  .word("FILE[=WEIGHT]")} +
                 written_file_options(),
      .result = merged_result(),
      .context = ContextUse::kNone,
      .run = [](const Context& context, const Request& request,
                const Call& call) { return merge(context, request, request.inputs, Covariances::kMerge, call); },
      .print = print_merged});
}

OperationSpec imatrix_convert_operation() {
  using Request = ConvertImportanceRequest;
  return operation(OperationOf<Request, MergedFile>{
      .name = "imatrix_convert",
      .group = OperationGroup::kEdit,
      .summary = "Convert an importance matrix to the other format",
      .description =
          "Convert an importance matrix of llama-imatrix to GGUF or to the legacy .dat format. Of a covariance "
          "file, only the importance is written.",
      .shared = &kImatrixVerb,
      .choice = "convert",
      .options =
          std::vector<Option<Request>>{option("path", &Request::path, path(), "the importance matrix").word("FILE")} +
          written_file_options(),
      .result = merged_result(),
      .context = ContextUse::kNone,
      .run = [](const Context& context, const Request& request,
                const Call& call) { return merge(context, request, {request.path}, Covariances::kOmit, call); },
      .print = print_merged});
}

}  // namespace ggufmill
