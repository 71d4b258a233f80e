#include "tests/support/checkpoint_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/synth.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

// Applies a JSON merge patch (RFC 7396): null removes a member, objects are merged, and all other values replace the
// old ones.
void patch(json::value& base, const json::value& changes) {
  if (!base.is_object()) base.emplace_object();
  for (const auto& [key, value] : changes.as_object()) {
    if (value.is_null())
      base.as_object().erase(key);
    else if (value.is_object() && base.as_object()[key].is_object())
      patch(base.as_object()[key], value);
    else
      base.as_object()[key] = value;
  }
}

void patch_file(const fs::path& path, const auto& change) {
  json::value value = fs::exists(path) ? json::parse(read_text(path)) : json::value(json::object());
  change(value);
  write_text(path, json::serialize(value));
}

// Inserts `token` into `list`, which is sorted by ID, replacing any token with the same ID.
void put_token(json::value& list, const json::object& token) {
  json::array& all = list.as_array();
  for (auto at = all.begin(); at != all.end();) at = at->at("id") == token.at("id") ? all.erase(at) : at + 1;
  const auto behind = std::find_if(all.begin(), all.end(), [&](const json::value& other) {
    return other.at("id").as_int64() > token.at("id").as_int64();
  });
  all.insert(behind, token);
}

const json::value* member(const json::value& value, std::string_view name) {
  return value.is_object() ? value.as_object().if_contains(name) : nullptr;
}

void add_token(const json::array& token, const fs::path& folder) {
  json::object entry{{"content", token[1]}, {"single_word", false},   {"lstrip", false},
                     {"rstrip", false},     {"normalized", token[3]}, {"special", token[2]}};
  patch_file(folder / "tokenizer_config.json", [&](json::value& value) {
    json::value& decoder = value.as_object()["added_tokens_decoder"];
    if (!decoder.is_object()) decoder.emplace_object();
    decoder.as_object()[std::to_string(token[0].as_int64())] = entry;
  });
  entry["id"] = token[0];
  patch_file(folder / "tokenizer.json", [&](json::value& value) { put_token(value.at("added_tokens"), entry); });
}

void make_tokenizer(const fs::path& hf, const json::value& tokenizer, const fs::path& folder) {
  for (const fs::directory_entry& entry :
       fs::directory_iterator(hf / "tokenizers" / tokenizer.at("from").as_string().c_str())) {
    const bool packed = entry.path().extension() == ".xz";
    std::string name = packed ? entry.path().stem() : entry.path().filename();
    if (const json::value* renamed = member(tokenizer, "rename"))
      if (const json::value* other = member(*renamed, name)) name = other->as_string().c_str();
    write_text(folder / name, packed ? decompressed(entry.path()) : read_text(entry.path()));
  }
  if (const json::value* without = member(tokenizer, "without"))
    for (const json::value& name : without->as_array()) fs::remove(folder / name.as_string().c_str());
  if (const json::value* patches = member(tokenizer, "patch"))
    for (const auto& changes : patches->as_object())
      patch_file(folder / std::string(changes.key()), [&](json::value& value) { patch(value, changes.value()); });
  if (const json::value* added = member(tokenizer, "added_tokens"))
    for (const json::value& token : added->as_array()) add_token(token.as_array(), folder);
}

struct DataType {
  std::size_t bytes;
  int rank;  // order in files of the usual writer: wide types first
};
const std::map<std::string, DataType, std::less<>> kTypes{
    {"I64", {8, 0}},     {"F64", {8, 1}},     {"I32", {4, 2}}, {"F32", {4, 3}}, {"F16", {2, 4}}, {"BF16", {2, 4}},
    {"F8_E4M3", {1, 5}}, {"F8_E5M2", {1, 5}}, {"U16", {2, 5}}, {"U8", {1, 6}},  {"I8", {1, 6}},  {"BOOL", {1, 7}},
};

struct TensorSpec {
  std::string name, type;
  std::vector<std::uint64_t> shape;
  std::string distribution;
  std::uint64_t seed;

  std::uint64_t count() const {
    std::uint64_t product = 1;
    for (const std::uint64_t dim : shape) product *= dim;
    return product;
  }
  std::uint64_t bytes() const { return count() * kTypes.at(type).bytes; }
};

TensorSpec read_tensor(const json::value& row) {
  const json::array& fields = row.as_array();
  TensorSpec tensor{fields[0].as_string().c_str(),
                    fields[1].as_string().c_str(),
                    {},
                    fields[3].as_string().c_str(),
                    fields[4].to_number<std::uint64_t>()};
  for (const json::value& dim : fields[2].as_array()) tensor.shape.push_back(dim.to_number<std::uint64_t>());
  return tensor;
}

// Returns output k + 1 of splitmix64.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t k) {
  std::uint64_t z = seed + (k + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

template <class Number>
void append(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

void append_low(std::string& out, std::uint64_t number, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}

void append_value(std::string& out, std::string_view type, float value) {
  if (type == "F32") return append(out, value);
  if (type == "F64") return append(out, static_cast<double>(value));
  if (type == "F16") return append(out, synth::to_f16(value));
  if (type == "BF16") return append(out, synth::to_bf16(value));
  throw std::runtime_error(fmt::format("no values of {}", type));
}

std::vector<std::string> words_of(std::string_view text, char separator) {
  std::vector<std::string> words(1);
  for (const char c : text) c == separator ? words.emplace_back() : words.back() += c, void();
  return words;
}

// Appends random bits, modified so that the exponent is not all ones.
void append_finite(std::string& out, std::string_view type, std::uint64_t bits) {
  const auto clear = [&](auto number, auto mask) {
    append(out, (number & mask) == mask ? decltype(number)(number & ~mask) : number);
  };
  if (type == "F32") return clear(static_cast<std::uint32_t>(bits >> 32), std::uint32_t{0x7f800000});
  clear(static_cast<std::uint16_t>(bits >> 48), static_cast<std::uint16_t>(type == "BF16" ? 0x7f80 : 0x7c00));
}

// Generates the distributions defined by tensor_bytes() in make_checkpoint.py.
std::string bytes_of(const TensorSpec& tensor) {
  const std::string& kind = tensor.distribution;
  const std::size_t size = kTypes.at(tensor.type).bytes;
  const std::uint64_t count = tensor.count(), seed = tensor.seed;
  std::string out;
  out.reserve(tensor.bytes());
  const std::vector<std::string> words = words_of(kind, ':');
  const auto each = [&](const auto& add) {
    for (std::uint64_t k = 0; k < count; ++k) add(k);
    return std::move(out);
  };
  if (kind == "zeros") return std::string(count * size, '\0');
  if (kind == "arange") return each([&](std::uint64_t k) { append_low(out, k, size); });
  if (words[0] == "div") return each([&](std::uint64_t k) { append_low(out, k / std::stoull(words[1]), size); });
  if (kind == "bits")
    return each([&](std::uint64_t k) { append_low(out, random_bits(seed, k) >> (64 - 8 * size), size); });
  if (kind == "finite") return each([&](std::uint64_t k) { append_finite(out, tensor.type, random_bits(seed, k)); });
  if (words[0] == "bytes" || kind == "fp8")
    return each([&](std::uint64_t k) {
      std::uint64_t byte = random_bits(seed, k) >> 56;
      if (words.size() == 3) byte = std::stoull(words[1]) + byte % std::stoull(words[2]);
      if (kind == "fp8" && (byte & 0x7f) == 0x7f) --byte;
      append_low(out, byte, 1);
    });
  if (words[0] == "literal") {
    const std::vector<std::string> numbers = words_of(words[1], ',');
    return each([&](std::uint64_t k) {
      const std::string& number = numbers[k % numbers.size()];
      if (tensor.type[0] == 'I')
        append_low(out, static_cast<std::uint64_t>(std::stoll(number)), size);
      else
        append_value(out, tensor.type, static_cast<float>(std::stod(number)));
    });
  }
  const std::vector<float> values = synth::values(kind == "scale" ? "norm" : kind, seed, 0, count);
  return each([&](std::uint64_t k) { append_value(out, tensor.type, kind == "scale" ? values[k] / 128 : values[k]); });
}

void write_safetensors(const fs::path& path, std::vector<TensorSpec> tensors, std::string_view order) {
  if (order == "usual")
    std::ranges::stable_sort(tensors, {},
                             [](const TensorSpec& t) { return std::pair(kTypes.at(t.type).rank, t.name); });
  if (order == "reversed") std::ranges::reverse(tensors);
  json::object header{{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    header[tensor.name] = json::object{{"dtype", tensor.type},
                                       {"shape", json::value_from(tensor.shape)},
                                       {"data_offsets", json::array{offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = json::serialize(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string out;
  append(out, static_cast<std::uint64_t>(text.size()));
  out += text;
  for (const TensorSpec& tensor : tensors) out += bytes_of(tensor);
  write_text(path, out);
}

bool lists(const json::value& spec, std::string_view name, const json::value& value) {
  const json::value* list = member(spec, name);
  return list && std::ranges::find(list->as_array(), value) != list->as_array().end();
}

void make_weights(const json::value& spec, const fs::path& folder) {
  const json::value *given = member(spec, "shards"), *listed = member(spec, "tensors"), *how = member(spec, "order");
  if (const json::value* further = member(spec, "more_weights"))
    for (const auto& [name, rows] : further->as_object()) {
      std::vector<TensorSpec> tensors;
      for (const json::value& row : rows.as_array()) tensors.push_back(read_tensor(row));
      const fs::path path = folder / std::string(name);
      fs::create_directories(path.parent_path());
      write_safetensors(path, tensors, "usual");
    }
  if (!listed || listed->as_array().empty()) return;
  const std::size_t shards = given ? given->to_number<std::size_t>() : 1;
  const std::string order = how ? how->as_string().c_str() : "usual";
  std::vector<TensorSpec> tensors;
  for (const json::value& row : listed->as_array()) tensors.push_back(read_tensor(row));
  const json::value *index = member(spec, "index"), *file = member(spec, "weights");
  if (shards == 1 && !(index && index->is_bool() && index->get_bool()))
    return write_safetensors(folder / (file ? file->as_string().c_str() : "model.safetensors"), tensors, order);
  json::object map;
  for (std::size_t k = 0; k < shards; ++k) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", k + 1, shards);
    std::vector<TensorSpec> part;
    for (std::size_t i = k * tensors.size() / shards; i < (k + 1) * tensors.size() / shards; ++i) {
      map[tensors[i].name] = name;
      if (!lists(spec, "omit", json::value(tensors[i].name))) part.push_back(tensors[i]);
    }
    if (!lists(spec, "omit_shards", json::value(static_cast<std::int64_t>(k))))
      write_safetensors(folder / name, part, order);
  }
  write_text(folder / "model.safetensors.index.json",
             json::serialize(json::object{{"metadata", json::object{}}, {"weight_map", map}}));
}

}  // namespace

void make_checkpoint_files(const fs::path& hf, const json::value& spec, const fs::path& folder) {
  fs::create_directories(folder);
  const auto text_of = [](const json::value& value) {
    return value.is_string() ? std::string(value.as_string()) : json::serialize(value);
  };
  for (const char* name : {"config", "generation_config"})
    if (const json::value* value = member(spec, name)) write_text(folder / name += ".json", text_of(*value));
  if (const json::value* tokenizer = member(spec, "tokenizer")) make_tokenizer(hf, *tokenizer, folder);
  if (const json::value* files = member(spec, "files"))
    for (const auto& [name, value] : files->as_object()) {
      const fs::path path = folder / std::string(name);
      fs::create_directories(path.parent_path());
      write_text(path, text_of(value));
    }
}

fs::path make_checkpoint(const fs::path& hf, const json::value& spec, const fs::path& parent) {
  const fs::path folder = parent / spec.at("folder").as_string().c_str();
  make_checkpoint_files(hf, spec, folder);
  make_weights(spec, folder);
  if (const json::value* others = member(spec, "beside"))
    for (const json::value& other : others->as_array()) make_checkpoint(hf, other, parent);
  return folder;
}

json::value read_xz_json(const fs::path& path) { return json::parse(decompressed(path)); }

}  // namespace ggufmill
