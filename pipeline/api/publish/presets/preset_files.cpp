#include "pipeline/api/publish/presets/preset_files.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

// The shortest text of the number, which a file has with the precision of a float.
std::string number_text(double number) { return fmt::format("{}", static_cast<float>(number)); }

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

template <class Value>
void add_parameter(std::string& to, const char* name, const std::optional<Value>& value) {
  if (!value) return;
  if constexpr (std::is_floating_point_v<Value>)
    to += fmt::format("PARAMETER {} {}\n", name, number_text(*value));
  else
    to += fmt::format("PARAMETER {} {}\n", name, *value);
}

std::string file_stem(const std::string& path) {
  const std::size_t begin = path.find_last_of('/') == path.npos ? 0 : path.find_last_of('/') + 1;
  return path.substr(begin, path.ends_with(".gguf") ? path.size() - begin - 5 : path.npos);
}

// Values of an INI file end before these characters, and names of sections before a bracket.
bool fits_ini(const std::string& text) { return text.find_first_of(";#]\n\r") == text.npos && text == trimmed(text); }

json::object field(const char* key, json::value value) { return {{"key", key}, {"value", std::move(value)}}; }
json::object checked(double value) { return {{"checked", true}, {"value", value}}; }
// The number as it is written, not the nearest double of a float.
double exact(double number) { return std::stod(number_text(number)); }

}  // namespace

Sampling sampling_of(const Metadata& metadata) {
  const auto real = [&](const char* key) -> std::optional<double> {
    const MetadataValue* const value = metadata.find(key);
    return value ? as_number(*value) : std::nullopt;
  };
  const auto whole = [&](const char* key) -> std::optional<std::int64_t> {
    const MetadataValue* const value = metadata.find(key);
    return value ? as_signed(*value) : std::nullopt;
  };
  return {real("general.sampling.temp"),   real("general.sampling.top_p"),
          real("general.sampling.min_p"),  real("general.sampling.penalty_repeat"),
          whole("general.sampling.top_k"), whole("general.sampling.penalty_last_n")};
}

std::string modelfile(const PresetModel& model, const PresetFacts& facts) {
  std::string text =
      fmt::format("# {} for Ollama: ollama create NAME -f Modelfile\nFROM {}\n", one_line(model.name), model.file);
  if (!model.projector.empty()) text += fmt::format("FROM {}\n", model.projector);
  add_parameter(text, "num_ctx", facts.context);
  add_parameter(text, "temperature", facts.sampling.temperature);
  add_parameter(text, "top_k", facts.sampling.top_k);
  add_parameter(text, "top_p", facts.sampling.top_p);
  add_parameter(text, "min_p", facts.sampling.min_p);
  add_parameter(text, "repeat_penalty", facts.sampling.repeat_penalty);
  add_parameter(text, "repeat_last_n", facts.sampling.repeat_last_n);
  if (!facts.chat.found) {
    if (!facts.chat.note.empty())
      text += fmt::format("# There is no TEMPLATE: {}.\n", one_line(facts.chat.note)) +
              (facts.chat.note.starts_with("the model has no")
                   ? ""
                   : "# Ollama takes one of its own that resembles it, or none: check what it answers.\n");
    return text;
  }
  for (const std::string& stop : facts.chat.found->stops) text += fmt::format("PARAMETER stop {}\n", stop);
  return text + fmt::format("# This template {}.\nTEMPLATE \"\"\"{}\"\"\"\n", one_line(facts.chat.note),
                            facts.chat.found->text);
}

std::string llama_server_presets(const std::vector<PresetModel>& models, std::optional<std::uint64_t> context) {
  std::string text =
      "; Start llama-server in the folder of this file: llama-server --models-preset FILE\n"
      "; Sampling and the chat template are in the models.\nversion = 1\n";
  for (const PresetModel& model : models) {
    const std::string name = file_stem(model.file);
    if (!fits_ini(name) || !fits_ini(model.file) || !fits_ini(model.projector)) {
      text += fmt::format("\n; {} is missing: its name has a character that ends a value here\n",
                          one_line(printable(model.file)));
      continue;
    }
    text += fmt::format("\n[{}]\nmodel = {}\n", name, model.file);
    if (!model.projector.empty()) text += fmt::format("mmproj = {}\n", model.projector);
    if (model.is_embedding) text += "embeddings = true\n";
    if (context) text += fmt::format("ctx-size = {}\n", *context);
  }
  return text;
}

std::string lm_studio_preset(const std::string& name, const PresetFacts& facts) {
  const Sampling& sampling = facts.sampling;
  json::array operation, load;
  if (sampling.temperature) operation.push_back(field("llm.prediction.temperature", exact(*sampling.temperature)));
  if (sampling.top_k) operation.push_back(field("llm.prediction.topKSampling", *sampling.top_k));
  if (sampling.top_p) operation.push_back(field("llm.prediction.topPSampling", checked(exact(*sampling.top_p))));
  if (sampling.min_p) operation.push_back(field("llm.prediction.minPSampling", checked(exact(*sampling.min_p))));
  if (sampling.repeat_penalty)
    operation.push_back(field("llm.prediction.repeatPenalty", checked(exact(*sampling.repeat_penalty))));
  if (facts.context) load.push_back(field("llm.load.contextLength", *facts.context));
  const std::string shown = is_utf8(name) ? name : printable(name);
  return json::serialize(json::object{{"identifier", "@local:" + shown},
                                      {"name", shown},
                                      {"changed", false},
                                      {"operation", json::object{{"fields", std::move(operation)}}},
                                      {"load", json::object{{"fields", std::move(load)}}}}) +
         "\n";
}

}  // namespace ggufmill
