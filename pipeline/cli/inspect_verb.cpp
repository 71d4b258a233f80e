// `ggufmill inspect`: shows the metadata and tensors of a model.

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "pipeline/api/describe.h"
#include "pipeline/api/edit.h"
#include "pipeline/api/pages.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/inspect_tensor.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec inspect_command() {
  CommandSpec spec;
  spec.usage = "ggufmill inspect MODEL... [options]";
  spec.description =
      "Show the metadata and tensors of a GGUF file (the first shard of a sharded model), a checkpoint folder (as "
      "`ggufmill convert` would write them), or a safetensors file (unchanged). Tensors without an offset are "
      "assembled from several places or have their values changed.\n\nWith --tensor, show a histogram of the tensor's "
      "values, or with --values, the values of some rows.";
  spec.examples =
      "  ggufmill inspect model.gguf\n"
      "  ggufmill inspect models/Llama-3-8B\n"
      "  ggufmill inspect model-00001-of-00005.gguf --json\n"
      "  ggufmill inspect model.gguf --tensor blk.0.ffn_up.weight\n"
      "  ggufmill inspect model-Q4_K_M.gguf model-Q4_K_S.gguf --html models.html";
  spec.positional = "model";
  spec.many = true;
  add_type_modules_option(spec.options);
  add_out_type_option(spec.options);
  auto add = spec.options.add_options();
  add("json",
      "print one JSON object: {files, metadata: [{key, type, value}], tensors: [{name, shape, type, bytes, ..}], "
      "parts}; "
      "with --tensor, its statistics or values; for several models, a list");
  add("tensor", po::value<std::string>(), "show statistics of the values of this tensor");
  add("values", "with --tensor: show its first values instead of statistics");
  add("rows", po::value<std::string>()->default_value("0:4"), "with --values: the rows to show, as FIRST:COUNT");
  add("html", po::value<std::string>(), "write an HTML page with pictures of the models to this file");
  add("overwrite", "replace an existing page");
  return spec;
}

void print_text(const Model& model) {
  std::vector<Row> rows;
  for (const MetadataEntry& entry : model.metadata.entries())
    rows.push_back({entry.key, std::string(metadata_type_name(entry.value.type)), describe(entry.value)});
  fmt::print("{} metadata values\n{}\n", rows.size(),
             render_table({name_column("key"), whole_column("type"), {"value"}}, rows));
  rows.clear();
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : model.tensors) {
    const Extent* const data = tensor.expression->as_extent();
    rows.push_back({tensor.name, describe(tensor.shape()), std::string(tensor.type->name),
                    with_commas(tensor.source_bytes()), data ? with_commas(data->offset) : ""});
    bytes += tensor.source_bytes();
  }
  std::uint64_t weights = 0;
  for (const Tensor& tensor : model.tensors) weights += tensor.shape().elements();
  fmt::print("{}\n{}", counted(rows.size(), "tensor"),
             render_table({name_column("tensor"),
                           whole_column("shape"),
                           whole_column("type"),
                           {"bytes", Align::kRight},
                           {"offset", Align::kRight}},
                          rows));
  fmt::print("{} weights, {}, {:.4f} bits per weight, in {}\n", with_commas(weights), human_bytes(bytes),
             weights ? 8.0 * static_cast<double>(bytes) / static_cast<double>(weights) : 0,
             counted(model.files.size(), "file"));
  if (const auto parts = parts_of(model); parts.size() > 1)
    fmt::print("parts of the checkpoint: {}; only the {} part is shown\n", list_parts(parts), part_name(parts.front()));
}

void print_edit_leftovers(const std::string& path) {
  for (const EditLeftover& left : edit_leftovers(path))
    print_note(fmt::format("{}  {}, left by an edit that was killed; the next edit removes it", left.path,
                           human_bytes(left.bytes)));
}

int write_page(const Context& context, const Strings& paths, OutType out_type, const po::variables_map& values) {
  std::vector<PicturedModel> models;
  Strings read;
  for (const std::string& path : paths) {
    const auto model = context.inspect(path, out_type);
    if (!model) return fail(model.error());
    print_warnings(model.value().warnings);
    print_edit_leftovers(path);
    models.push_back(pictured(path, model.value()));
    for (std::string& file : model.value().paths()) read.push_back(std::move(file));
  }
  const auto page = values["html"].as<std::string>();
  const Status written = write_page(context, page, models_html(models), std::move(read), values.count("overwrite") > 0);
  if (!written) return fail(written.error());
  print_note(fmt::format("wrote {}", page));
  return 0;
}

// Shows one model. `list`: null for text output.
int show(const Context& context, const std::string& path, const Model& model, JsonList* list, bool headed,
         const po::variables_map& values) {
  if (headed && !list) fmt::print("{}\n", printable(path));
  if (values.count("tensor")) return show_tensor(context, model, list, values);
  if (!list) {
    print_text(model);
    return 0;
  }
  list->begin_item();
  describe_model(model, [](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stdout); });
  return 0;
}

int inspect_verb(const Parsed& parsed) {
  const po::variables_map& values = parsed.values;
  for (const auto& [option, needed] : {std::pair("values", "tensor"), {"rows", "values"}, {"overwrite", "html"}})
    if (values.count(option) && !values[option].defaulted() && !values.count(needed))
      return fail(usage_error(fmt::format("--{} requires --{}", option, needed)));
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  const auto out_type = read_out_type(values);
  if (!out_type) return fail(out_type.error());
  const auto paths = values["model"].as<Strings>();
  if (values.count("html")) return write_page(context.value(), paths, out_type.value(), values);
  std::optional<JsonList> list;
  if (values.count("json")) list.emplace(paths.size());
  int code = 0;
  for (const std::string& path : paths) {
    const bool is_first = &path == &paths.front();
    if (!is_first && !list) std::puts("");
    const auto model = context.value().inspect(path, out_type.value());
    if (model) {
      print_warnings(model.value().warnings);
      print_edit_leftovers(path);
    }
    const int one = model
                        ? show(context.value(), path, model.value(), list ? &*list : nullptr, paths.size() > 1, values)
                        : fail(model.error());
    if (code == 0) code = one;
  }
  return code;
}

}  // namespace

const Verb kInspectVerb{"inspect", OperationGroup::kInspect, "Show the metadata and tensors of models", inspect_command,
                        inspect_verb};

}  // namespace ggufmill
