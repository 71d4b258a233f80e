// `fit`: what a model needs in memory while it runs, and how many of its layers fit on devices.

#include "pipeline/api/fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "pipeline/api/describe.h"
#include "pipeline/api/job_steps.h"
#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/core/upstream.h"
#include "pipeline/llama_cpp/quantize_options.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

struct FitRequest {
  std::string path{};
  std::string type{};
  OutType out_type = OutType::kAuto;
  std::vector<std::uint64_t> contexts = {4096, 32768};
  std::string kv = "F16";
  bool flash_attention = true;
  std::uint64_t batch = 512;
  std::vector<std::uint64_t> devices{};
  std::uint64_t margin = std::uint64_t{1} << 30;
  std::optional<std::uint64_t> bandwidth{};
};

// A model with a context.
struct FitRow : Fitted {
  std::string model{}, architecture{};
  std::uint64_t context = 0;
};

struct FitTable {
  std::string path{}, kv{};
  std::uint64_t batch = 0;
  std::vector<FitRow> rows{};
};

std::string architecture_of(const Metadata& metadata) {
  const MetadataValue* const value = metadata.find("general.architecture");
  return value ? std::string(as_string(*value).value_or("")) : std::string();
}

FitModel model_of(const std::string& name, const Model& model) {
  FitModel made{.name = name, .metadata = model.metadata};
  for (const Tensor& tensor : model.tensors)
    made.tensors.push_back({tensor.name, tensor.shape(), tensor.type, padded_bytes(tensor, *tensor.type, 0)});
  return made;
}

bool is_pipeline_file(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

Result<std::vector<FitModel>> planned_models(const Context& context, const Job& job, const Call& call) {
  BOOST_OUTCOME_TRY(const Plan plan, context.plan(with_known_importance(context, job)));
  call.warn_all(plan.warnings);
  std::vector<FitModel> models;
  for (const PlannedOutput& output : plan.outputs) {
    auto model = model_to_fit(output);
    if (!model) continue;
    models.push_back(std::move(*model));
    if (!is_measured(output))
      call.warn(
          fmt::format("{}: its types are chosen by a measurement that does not exist yet, so the size of the "
                      "weights is not final; `ggufmill measure` makes it",
                      models.back().name));
  }
  if (models.empty())
    return usage_error("no output of the pipeline file is a text model in a GGUF file",
                       "`fit` describes models that generate text or embeddings");
  return models;
}

// Returns the models of all jobs of a pipeline file, and adds the errors of jobs that cannot be planned.
Result<std::vector<FitModel>> batch_models(const Context& context, const std::string& path, Diagnostics& errors,
                                           const Call& call) {
  BOOST_OUTCOME_TRY(const Batch batch, context.load_batch(path));
  std::vector<FitModel> models;
  for (const BatchJob& each : batch.jobs) {
    auto made = planned_models(context, each.job, call);
    if (made)
      std::ranges::move(made.value(), std::back_inserter(models));
    else if (!batch.is_matrix)
      return made;
    else
      for (const Error& error : of_source({made.error()}, each.source)) errors.add(error);
  }
  if (models.empty()) return errors.together();
  return models;
}

Result<std::vector<FitModel>> read_models(const Context& context, const FitRequest& request, Diagnostics& errors,
                                          const Call& call) {
  if (is_pipeline_file(request.path)) return batch_models(context, request.path, errors, call);
  if (!request.type.empty()) {
    QuantizeOptions options;
    std::vector<std::string> warnings;
    BOOST_OUTCOME_TRY(read_words({request.path, request.type, "", ""}, options, warnings));
    BOOST_OUTCOME_TRY(const std::string pipeline, pipeline_of(options, warnings, context.recipes()));
    BOOST_OUTCOME_TRY(Job job, context.parse_job(pipeline, request.path));
    if (request.out_type != OutType::kAuto)
      for (JobOutput& output : job.outputs) output.out_type = request.out_type;
    return planned_models(context, job, call);
  }
  BOOST_OUTCOME_TRY(const Model model, context.inspect(request.path, request.out_type));
  call.warn_all(model.warnings);
  return std::vector<FitModel>{model_of(request.path, model)};
}

Result<const TypeInfo*> cache_type_of(const FitRequest& request, const Types& types) {
  const TypeInfo* const type = types.find(request.kv);
  if (!type) return unknown_type(request.kv, types);
  if (type->is_quantized() && !request.flash_attention)
    return usage_error(
        fmt::format("llama.cpp keeps values as {} only with flash attention", type->name),
        fmt::format("use a type of single elements, {}, or flash attention", option_reference("kv", "f16")));
  return type;
}

Status check_fit(const FitRequest& request) {
  if (is_pipeline_file(request.path) && (!request.type.empty() || request.out_type != OutType::kAuto))
    return usage_error(fmt::format("{} has no effect on a pipeline file, which names the types of its outputs",
                                   option_reference(request.type.empty() ? "outtype" : "type")),
                       "change the pipeline file, or name the model");
  for (const std::uint64_t size : request.devices)
    if (size <= request.margin)
      return usage_error(fmt::format("nothing of a device of {} is left if {} stay free", human_bytes(size),
                                     human_bytes(request.margin)),
                         fmt::format("give less, {}, or the memory in larger units, {}",
                                     option_reference("margin", "0"), option_reference("device", "24GiB")));
  return ok();
}

Result<Answer<FitTable>> run_fit(const Context& context, const FitRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(const auto added, huggingface::AddedMaps::read(huggingface::map_places(context.maps())));
  FitSettings settings;
  BOOST_OUTCOME_TRY(settings.cache_type, cache_type_of(request, context.registry().types));
  settings.run.batch = request.batch;
  settings.run.flash_attention = request.flash_attention;
  settings.devices = request.devices;
  settings.margin = request.margin;
  constexpr std::uint64_t kMinBandwidth = 1'000'000;  // less is a number without its unit
  if (request.bandwidth && *request.bandwidth < kMinBandwidth)
    return usage_error(fmt::format("{}: {} bytes per second are too few for a memory", option_reference("bandwidth"),
                                   *request.bandwidth),
                       fmt::format("write the unit: {0}G for {0} GB/s", *request.bandwidth));
  if (request.bandwidth) settings.bandwidth = static_cast<double>(*request.bandwidth);
  Diagnostics errors;
  BOOST_OUTCOME_TRY(const std::vector<FitModel> models, read_models(context, request, errors, call));
  Answer<FitTable> answer{{.path = request.path, .kv = std::string(settings.cache_type->name), .batch = request.batch}};
  std::set<std::string> unknown;
  for (const FitModel& model : models) {
    for (const std::uint64_t tokens : request.contexts) {
      settings.run.context = tokens;
      auto fitted = fit_of(model.tensors, model.metadata, settings, added);
      if (!fitted) {
        Error error = fitted.error();
        if (error.where.empty() && error.code == ExitCode::kBadInput) error.where = model.name;
        if (models.size() == 1 || error.code != ExitCode::kBadInput) return error;
        errors.add(std::move(error));
        break;
      }
      if (!fitted.value().is_known) unknown.insert(architecture_of(model.metadata));
      answer.value.rows.push_back({std::move(fitted).value(), model.name, architecture_of(model.metadata), tokens});
    }
  }
  if (answer.value.rows.empty()) return errors.together();
  for (const std::string& architecture : unknown)
    call.warn(
        fmt::format("no map describes the architecture {}: all layers are taken for attention layers, so the "
                    "sizes of the cache and of states are estimates",
                    quoted_name(architecture)));
  if (!errors.empty()) answer.failure = errors.together();
  return answer;
}

// ---- text ----

std::string size_of(std::uint64_t bytes) { return bytes == 0 ? "" : human_bytes(bytes); }

// The layers on each device, and the output layer with the last of them: "17, 16", as llama.cpp's -ts takes them.
std::string layers_of(const FitRow& row) {
  std::vector<std::uint64_t> layers;
  for (std::size_t i = 0; i + 1 < row.devices.size(); ++i)
    layers.push_back(row.devices[i].layers + (row.devices[i].has_output ? row.unused + 1 : 0));
  return fmt::format("{}", fmt::join(layers, ","));
}

bool has_states(const FitTable& table) {
  return std::ranges::any_of(table.rows, [](const FitRow& row) { return row.all.states != 0; });
}

std::string table_of(const FitTable& table) {
  const bool has_devices = !table.rows.front().devices.empty();
  const bool has_speed = table.rows.front().tokens_per_second.has_value();
  std::vector<Column> columns{
      name_column("model"), {"context", Align::kRight}, {"weights", Align::kRight}, {"KV cache", Align::kRight}};
  if (has_states(table)) columns.push_back({"states", Align::kRight});
  columns.push_back({"compute~", Align::kRight});
  columns.push_back({"total~", Align::kRight});
  if (has_devices) {
    columns.push_back({"fits", Align::kLeft});
    columns.push_back(whole_column("for llama.cpp"));
  }
  if (has_speed) columns.push_back({"tokens/s", Align::kRight});
  std::vector<Row> rows;
  for (const FitRow& it : table.rows) {
    Row row{it.model, with_commas(it.context), size_of(it.all.weights), size_of(it.all.cache)};
    if (has_states(table)) row.push_back(size_of(it.all.states));
    row.push_back(size_of(it.all.compute));
    row.push_back(size_of(it.all.total()));
    if (has_devices) {
      row.push_back(it.fits ? "yes" : fmt::format("{} of {} layers", it.offloaded, it.layers + 1));
      const bool is_split = it.devices.size() > 2 && it.offloaded != 0;
      row.push_back(fmt::format("-ngl {}{}", it.offloaded_of_all(), is_split ? " -ts " + layers_of(it) : ""));
    }
    if (has_speed)
      row.push_back(it.tokens_per_second ? fmt::format("<= {:.1f}", *it.tokens_per_second) : std::string());
    rows.push_back(std::move(row));
  }
  return render_table(columns, rows);
}

// The devices of the only row.
std::string devices_text(const FitRow& it) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < it.devices.size(); ++i) {
    const DeviceUse& device = it.devices[i];
    const bool is_machine = i + 1 == it.devices.size();
    std::string layers = std::to_string(device.layers);
    if (device.has_output) layers += " + output";
    if (is_machine) layers += " + embedding";
    rows.push_back({is_machine ? "memory of the machine" : fmt::format("device {}", i + 1), layers,
                    size_of(device.weights), size_of(device.cache), size_of(device.states), size_of(device.compute),
                    size_of(device.total()), is_machine ? std::string() : human_bytes(device.size - device.total())});
  }
  return "\n" + render_table({whole_column(""),
                              whole_column("layers"),
                              {"weights", Align::kRight},
                              {"KV cache", Align::kRight},
                              {"states", Align::kRight},
                              {"compute~", Align::kRight},
                              {"total~", Align::kRight},
                              {"free~", Align::kRight}},
                             rows);
}

// Says which numbers are exact.
std::string exact_text(const FitTable& table) {
  if (!std::ranges::all_of(table.rows, &FitRow::is_known))
    return fmt::format("weights are exact for llama.cpp {}; the cache is an estimate, and ", upstream_version());
  return fmt::format("{} are exact for llama.cpp {}, and ",
                     has_states(table) ? "weights, KV cache, and states" : "weights and KV cache", upstream_version());
}

void print_fit(const FitTable& table, TextOutput& to) {
  to.out = table_of(table);
  const FitRow& first = table.rows.front();
  if (table.rows.size() == 1 && !first.devices.empty()) to.out += devices_text(first);
  const bool same_layers = std::ranges::all_of(table.rows, [&](const FitRow& it) { return it.layers == first.layers; });
  const std::string layers = same_layers ? counted(first.layers, "layer") + ", " : "";
  to.out += fmt::format("\n{}KV cache {}; {}~ is an estimate, for {} at once.\n", layers, table.kv, exact_text(table),
                        counted(table.batch, "token"));
  if (!first.tokens_per_second) return;
  to.out += "tokens/s is an upper bound, with a full context";
  if (table.rows.size() == 1)
    to.out += fmt::format(": each token reads {} from memory", human_bytes(first.read_per_token));
  to.out += ".\n";
}

// ---- JSON ----

template <class Value>
std::vector<ResultMember> memory_members() {
  const auto bytes = [](std::uint64_t MemoryUse::*member) {
    return [member](const Value& value) -> std::optional<json::value> {
      const MemoryUse& use = value;
      return use.*member;
    };
  };
  return {result<Value>("weights", bytes(&MemoryUse::weights), "bytes of the weights"),
          result<Value>("cache", bytes(&MemoryUse::cache), "bytes of keys and values"),
          result<Value>("states", bytes(&MemoryUse::states), "bytes of the states of recurrent layers"),
          result<Value>("compute", bytes(&MemoryUse::compute), "bytes of buffers for computations, an estimate"),
          result<Value>(
              "total", [](const Value& value) { return std::optional(json::value(value.total())); }, "their sum")};
}

ResultForm<FitTable> fit_result() {
  const ResultForm<DeviceUse> device{
      std::vector<ResultMember>{result("size", &DeviceUse::size, "bytes of its memory; 0 for that of the machine"),
                                result("layers", &DeviceUse::layers, "number of layers on it"),
                                result("has_output", &DeviceUse::has_output, "true if the output layer is on it")} +
      memory_members<DeviceUse>()};
  std::vector<ResultMember> row{result("model", &FitRow::model, "the model, or the output of the pipeline file"),
                                result("architecture", &FitRow::architecture, "general.architecture"),
                                result("context", &FitRow::context, "number of tokens")};
  for (ResultMember& each : memory_members<MemoryUse>()) {
    each.write = [write = std::move(each.write)](const void* value, json::object& into) {
      write(&static_cast<const FitRow*>(value)->all, into);
    };
    row.push_back(std::move(each));
  }
  row.push_back(result<FitRow>(
      "fits", [](const FitRow& it) { return std::optional(json::value(it.fits)); },
      "true if all layers are on devices, or there are none"));
  row.push_back(result<FitRow>(
      "layers", [](const FitRow& it) { return std::optional(json::value(it.layers)); },
      "number of layers, without the output layer"));
  row.push_back(result<FitRow>(
      "offloaded", [](const FitRow& it) { return std::optional(json::value(it.offloaded_of_all())); },
      "number of layers on devices, with the output layer and those that are not loaded: llama.cpp's -ngl"));
  ResultMember devices = result<FitRow>(
      "devices", [device](const FitRow& it) -> std::optional<json::value> { return objects_of(it.devices, device); },
      "the devices in order, then the machine");
  devices.shape = "[" + shape_of(device.members) + "]";
  row.push_back(std::move(devices));
  row.push_back(result<FitRow>(
      "read_per_token", [](const FitRow& it) { return std::optional(json::value(it.read_per_token)); },
      "bytes that a token reads if the context is full"));
  row.push_back(result<FitRow>(
      "tokens_per_second",
      [](const FitRow& it) -> std::optional<json::value> {
        if (!it.tokens_per_second) return {};
        return *it.tokens_per_second;
      },
      "upper bound, with @bandwidth"));
  row.push_back(result<FitRow>(
      "is_known", [](const FitRow& it) { return std::optional(json::value(it.is_known)); },
      "true if a map describes the architecture; otherwise, cache and states are estimates"));
  return {{result("path", &FitTable::path, "the model or pipeline file"),
           result("kv", &FitTable::kv, "type of the KV cache"),
           result("rows", &FitTable::rows, ResultForm<FitRow>{std::move(row)}, "one for each model and context")}};
}

// Numbers in a list: "4096,32768".
template <class Read>
Form<std::vector<std::uint64_t>> numbers_form(Read read) {
  return converted<std::vector<std::uint64_t>>(
      number_as_text(), [read](const std::string& text) -> Result<std::vector<std::uint64_t>> {
        std::vector<std::uint64_t> numbers;
        for (std::size_t begin = 0; begin <= text.size();) {
          const std::size_t end = std::min(text.find(',', begin), text.size());
          BOOST_OUTCOME_TRY(numbers.emplace_back(), read(text.substr(begin, end - begin)));
          begin = end + 1;
        }
        return numbers;
      });
}

Result<std::uint64_t> tokens_of(const std::string& word) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 31;
  const auto number = whole_number<std::uint64_t>(word);
  if (!number || *number == 0 || *number > kMax)
    return usage_error(fmt::format("{} is not a number of tokens", quoted_name(word)),
                       fmt::format("for example {}", option_reference("context", "4096,32768")));
  return *number;
}

Result<std::uint64_t> memory_of(const std::string& word) {
  auto bytes = parse_bytes(word);
  if (!bytes || bytes.value() == 0)
    return usage_error(fmt::format("{} is not the memory of a device", quoted_name(word)),
                       fmt::format("for example {} for two devices", option_reference("device", "24GiB,24GiB")));
  return bytes;
}

}  // namespace

OperationSpec fit_operation() {
  return operation(OperationOf<FitRequest, FitTable>{
      .name = "fit",
      .group = OperationGroup::kInspect,
      .summary = "Show how much memory a model needs, and how many layers fit on devices",
      .description =
          "Show what llama.cpp needs to run a model: its weights, the cache of keys and values for each context, the "
          "states of recurrent layers, and the buffers of computations; with @device, how many layers fit on the "
          "devices, and the options of llama.cpp with which they lie there; with @bandwidth, how many tokens per "
          "second are possible at most. Reads only headers.\n\n@path is a GGUF file, the first shard of a sharded "
          "model, a checkpoint, as it is or with @type as it would be quantized, the address of one of these "
          "(hf://OWNER/MODEL), or a pipeline file (*.yaml), whose text models in GGUF files are shown, with a matrix "
          "those of all sources.\n\nWeights, cache and states "
          "are "
          "those of llama.cpp to the byte if everything is in one memory. The buffers of computations are an "
          "estimate for its CPU backend, mostly within 3%; other backends need more or less. The number of tokens per "
          "second is an upper bound: the bandwidth by the bytes of weights and cache that a token reads when the "
          "context is full; of experts, those that are used. Layers are assigned as llama.cpp does: the first ones "
          "remain in the memory of the machine, and the output is on the last device.",
      .examples = "  ggufmill fit model-Q4_K_M.gguf --context 32768 --kv q8_0 --device 24GiB,24GiB\n"
                  "  ggufmill fit models/Llama-3-8B --type Q4_K_M,Q5_K_M,Q8_0 --context 4096,32768\n"
                  "  ggufmill fit job.yaml --device 8GiB --bandwidth 448G\n"
                  "  ggufmill fit hf://Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf --json",
      .options = {option("path", &FitRequest::path, path(), "model, or pipeline file").word("MODEL"),
                  option(
                      "type", &FitRequest::type, text(),
                      "show the model as it would be quantized: a recipe, as for `ggufmill quantize`, or several: A,B")
                      .example("Q4_K_M"),
                  option("outtype", &FitRequest::out_type, enumeration<OutType>(kOutTypeWords), kOutTypeHelp),
                  option("context", &FitRequest::contexts, numbers_form(tokens_of),
                         "number of tokens of the context, or several; 4096,32768 by default")
                      .example("32768"),
                  option("kv", &FitRequest::kv, text(), "type of the KV cache"),
                  option("flash_attention", &FitRequest::flash_attention, boolean(), "use flash attention")
                      .as_flags({{"no-flash-attention", "false", "do not use flash attention"}}),
                  option("batch", &FitRequest::batch, integer<std::uint64_t>().at_least(1).at_most(1 << 20),
                         "number of tokens that are computed at once: llama.cpp's -ub"),
                  option("device", &FitRequest::devices, numbers_form(memory_of),
                         "memory of the device, or of several in order: 24GiB,24GiB")
                      .example("24GiB,24GiB"),
                  option("margin", &FitRequest::margin, bytes(), "memory of each device that stays free"),
                  option("bandwidth", &FitRequest::bandwidth, bytes(),
                         "bytes per second that are read from memory, for the number of tokens per second")
                      .example("448G")},
      .result = fit_result(),
      .context = ContextUse::kCheckpoints,
      .only_reads = true,
      .check = check_fit,
      .run = run_fit,
      .print = print_fit});
}

}  // namespace ggufmill
