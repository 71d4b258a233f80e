#include "pipeline/manifest/attestation.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::string_view kStatement = "https://in-toto.io/Statement/v1";
constexpr std::string_view kPredicate = "https://slsa.dev/provenance/v1";
constexpr std::string_view kBuilder = "https://pypi.org/project/ggufmill/";
constexpr std::string_view kBuildType = "https://pypi.org/project/ggufmill/#pipeline-v1";

json::string name_json(const std::string& text) { return json::string(is_utf8(text) ? text : quoted_name(text)); }

json::object digest_json(const std::string& sha256) { return {{"sha256", sha256}}; }

std::string needed_sha256(const json::value& value) {
  std::string digits = needed_text(needed(value, "digest"), "sha256");
  if (digits.size() != 64 || digits.find_first_not_of("0123456789abcdef") != digits.npos)
    throw InvalidJson{"'sha256' has not 64 hexadecimal digits"};
  return digits;
}

using Hashes = std::vector<std::pair<std::string, std::uint64_t>>;

json::object hashes_json(const Hashes& hashes) {
  json::object written;
  for (const auto& [name, hash] : hashes) written[name_json(name)] = fmt::format("{:016x}", hash);
  return written;
}

Hashes read_hashes(const json::value& notes, const char* name) {
  const json::value& written = needed(notes, name);
  if (!written.is_object()) throw InvalidJson{fmt::format("'{}' is not an object", name)};
  Hashes hashes;
  for (const json::key_value_pair& each : written.get_object())
    hashes.emplace_back(each.key(), needed_hash(written, each.key()));
  return hashes;
}

json::object attested_json(const AttestedFile& file) {
  json::object notes{{"bytes", file.bytes}};
  if (!file.recipe.empty()) notes["recipe"] = name_json(file.recipe);
  if (!file.modules.empty()) notes["modules"] = modules_json(file.modules);
  if (!file.importance_file.empty() && is_utf8(file.importance_file)) notes["imatrix_file"] = file.importance_file;
  notes["tensors_xxh3"] = hashes_json(file.tensors);
  notes["metadata_xxh3"] = hashes_json(file.metadata);
  return {{"name", name_json(file.name)}, {"digest", digest_json(file.sha256)}, {"annotations", std::move(notes)}};
}

AttestedFile read_attested(const json::value& value) {
  AttestedFile file{needed_text(value, "name"), needed_sha256(value)};
  const json::value& notes = needed(value, "annotations");
  file.bytes = needed_number(notes, "bytes");
  file.recipe = json_string(notes, "recipe").value_or("");
  if (json_member(notes, "modules")) file.modules = read_modules(needed_list(notes, "modules"));
  file.importance_file = json_string(notes, "imatrix_file").value_or("");
  file.tensors = read_hashes(notes, "tensors_xxh3");
  file.metadata = read_hashes(notes, "metadata_xxh3");
  return file;
}

json::object source_json(const AttestedSource& source) {
  json::object written{{"name", name_json(source.name)}};
  if (source.is_address) written["uri"] = name_json(source.name);
  written["digest"] = digest_json(source.sha256);
  written["annotations"] = json::object{{"bytes", source.bytes}};
  return written;
}

AttestedSource read_source(const json::value& value) {
  AttestedSource source{needed_text(value, "name"), false, needed_sha256(value)};
  if (const auto uri = json_string(value, "uri")) {
    source.name = *uri;
    source.is_address = true;
  }
  source.bytes = needed_number(needed(value, "annotations"), "bytes");
  return source;
}

json::object module_json(const AttestedModule& module) {
  return {{"name", name_json(module.name)},
          {"digest", digest_json(module.sha256)},
          {"annotations", json::object{{"version", name_json(module.version)}, {"isa", module.isa}}}};
}

AttestedModule read_module(const json::value& value) {
  const json::value& notes = needed(value, "annotations");
  return {needed_text(value, "name"), needed_text(notes, "version"), needed_text(notes, "isa"), needed_sha256(value)};
}

template <class Item, class Write>
json::array list_json(const std::vector<Item>& items, Write write) {
  json::array list;
  for (const Item& item : items) list.push_back(write(item));
  return list;
}

}  // namespace

std::vector<std::pair<std::string, std::uint64_t>> hashes_of(const Metadata& metadata) {
  Hashes hashes;
  for (const MetadataEntry& entry : metadata.entries())
    hashes.emplace_back(entry.key, XXH3_64bits_withSeed(entry.value.bytes.data(), entry.value.bytes.size(),
                                                        static_cast<std::uint64_t>(entry.value.type)));
  return hashes;
}

std::string write_statement(const Attestation& it) {
  return json::serialize(json::object{
      {"_type", kStatement},
      {"subject", list_json(it.files, attested_json)},
      {"predicateType", kPredicate},
      {"predicate",
       json::object{
           {"buildDefinition", json::object{{"buildType", kBuildType},
                                            {"externalParameters", json::object{{"pipeline", name_json(it.pipeline)}}},
                                            {"internalParameters", json::object{{"isa", it.isa}}},
                                            {"resolvedDependencies", list_json(it.sources, source_json)}}},
           {"runDetails",
            json::object{{"builder", json::object{{"id", kBuilder},
                                                  {"version", json::object{{"ggufmill", it.ggufmill},
                                                                           {"llama.cpp", it.llama_cpp}}},
                                                  {"builderDependencies", list_json(it.modules, module_json)}}}}}}}});
}

Result<Attestation> read_statement(std::string_view text, const std::string& path) {
  BOOST_OUTCOME_TRY(const json::value root, parse_json(path, text));
  try {
    const std::string type = needed_text(root, "_type"), predicate_type = needed_text(root, "predicateType");
    if (type != kStatement || predicate_type != kPredicate)
      return input_error(path,
                         fmt::format("is a statement of type {} with a predicate of type {}", quoted_name(type),
                                     quoted_name(predicate_type)),
                         fmt::format("only {} with {} is supported", kStatement, kPredicate));
    const json::value& predicate = needed(root, "predicate");
    const json::value& build = needed(predicate, "buildDefinition");
    const json::value& builder = needed(needed(predicate, "runDetails"), "builder");
    if (needed_text(build, "buildType") != kBuildType)
      return input_error(path, fmt::format("attests a build of type {}, not one by ggufmill",
                                           quoted_name(needed_text(build, "buildType"))));
    Attestation read;
    for (const json::value& each : needed_list(root, "subject")) read.files.push_back(read_attested(each));
    if (read.files.empty()) throw InvalidJson{"'subject' is empty"};
    read.pipeline = needed_text(needed(build, "externalParameters"), "pipeline");
    read.isa = needed_text(needed(build, "internalParameters"), "isa");
    for (const json::value& each : needed_list(build, "resolvedDependencies"))
      read.sources.push_back(read_source(each));
    read.ggufmill = needed_text(needed(builder, "version"), "ggufmill");
    read.llama_cpp = needed_text(needed(builder, "version"), "llama.cpp");
    for (const json::value& each : needed_list(builder, "builderDependencies"))
      read.modules.push_back(read_module(each));
    return read;
  } catch (const InvalidJson& invalid) {
    return input_error(path, "is not a valid attestation: " + invalid.what);
  }
}

}  // namespace ggufmill
