#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/ggml/ggml.h"

namespace ggufmill {
namespace ggml {
namespace {

constexpr std::size_t kBuffer = 1 << 16;
constexpr std::uint32_t kMaxTextLength = 4095;  // bytes of a token or a name
constexpr std::uint32_t kMaxTokens = 16 << 20;
constexpr std::size_t kMaxTensors = 1 << 20;
constexpr std::uint64_t kAlignment = 32;  // of tensors in GGJT files

// Names of the recipes of that time, indexed by the file type in the file; empty: unused.
constexpr std::string_view kFileTypes[] = {"ALL_F32",
                                           "MOSTLY_F16",
                                           "MOSTLY_Q4_0",
                                           "MOSTLY_Q4_1",
                                           "MOSTLY_Q4_1_SOME_F16",
                                           "",
                                           "",
                                           "MOSTLY_Q8_0",
                                           "MOSTLY_Q5_0",
                                           "MOSTLY_Q5_1",
                                           "MOSTLY_Q2_K",
                                           "MOSTLY_Q3_K_S",
                                           "MOSTLY_Q3_K_M",
                                           "MOSTLY_Q3_K_L",
                                           "MOSTLY_Q4_K_S",
                                           "MOSTLY_Q4_K_M",
                                           "MOSTLY_Q5_K_S",
                                           "MOSTLY_Q5_K_M",
                                           "MOSTLY_Q6_K"};

// Old and new names of tensors; in a layer, after "layers.N.".
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"tok_embeddings", "token_embd"}, {"norm", "output_norm"}, {"output", "output"}, {"rope.freqs", "rope_freqs"}};
constexpr std::pair<std::string_view, std::string_view> kLayerNames[] = {
    {"attention_norm", "attn_norm"}, {"attention.wq", "attn_q"},
    {"attention.wk", "attn_k"},      {"attention.wv", "attn_v"},
    {"attention.wo", "attn_output"}, {"attention.inner_attention.rope.freqs", "attn_rot_embd"},
    {"ffn_norm", "ffn_norm"},        {"feed_forward.w1", "ffn_gate"},
    {"feed_forward.w2", "ffn_down"}, {"feed_forward.w3", "ffn_up"}};

template <class Table>
std::string_view renamed(const Table& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, [](const auto& each) { return each.first; });
  return found == std::end(table) ? std::string_view() : found->second;
}

// Returns the new name of a tensor; empty if the name is unknown in LLaMA.
std::string new_name(std::string_view name) {
  std::string_view suffix;
  for (const std::string_view each : {std::string_view(".weight"), std::string_view(".bias")})
    if (name.ends_with(each)) suffix = each;
  name.remove_suffix(suffix.size());
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) {
    const std::string_view found = renamed(kNames, name);
    return found.empty() ? std::string() : std::string(found) + std::string(suffix);
  }
  name.remove_prefix(kLayers.size());
  const std::size_t end = name.find('.');
  const std::string_view number = name.substr(0, end);
  const bool is_number = !number.empty() && number.size() < 10 && number.find_first_not_of("0123456789") == number.npos;
  if (end == name.npos || !is_number) return {};
  const std::string_view found = renamed(kLayerNames, name.substr(end + 1));
  return found.empty() ? std::string() : fmt::format("blk.{}.{}{}", number, found, suffix);
}

enum class Format { kGgml, kGgmf, kGgjt };
constexpr std::string_view kFormatNames[] = {"GGML", "GGMF", "GGJT"};

struct Parameters {
  std::uint32_t tokens = 0, embedding = 0, multiple = 0, heads = 0, layers = 0, rotated = 0, file_type = 0;
};

// Reads the file sequentially, through a small buffer.
class Reader {
 public:
  Reader(const SourceOptions& options, std::shared_ptr<const ByteSource> file)
      : options_(options), file_(std::move(file)) {}

  Result<Model> read() {
    Model model;
    model.files = {file_->describe()};
    BOOST_OUTCOME_TRY(read_format());
    BOOST_OUTCOME_TRY(read_parameters());
    BOOST_OUTCOME_TRY(check_types());
    BOOST_OUTCOME_TRY(read_vocabulary());
    BOOST_OUTCOME_TRY(read_tensors(model));
    BOOST_OUTCOME_TRY(describe(model));
    return model;
  }

 private:
  Error error(const std::string& what, const std::string& help = {}) const {
    Error error = input_error(file_->path(), what, help);
    error.detail = fmt::format("at byte {:#x}", position());
    return error;
  }
  std::uint64_t position() const { return start_ + at_; }
  std::uint64_t left() const { return file_->bytes() - position(); }

  Status take(std::span<char> into) {
    if (into.size() > left()) return error(fmt::format("the file ends where {} bytes are expected", into.size()));
    while (!into.empty()) {
      if (at_ == buffer_.size()) {
        start_ += at_;
        at_ = 0;
        buffer_.resize(std::min<std::uint64_t>(kBuffer, file_->bytes() - start_));
        BOOST_OUTCOME_TRY(file_->read(start_, std::as_writable_bytes(std::span(buffer_))));
      }
      const std::size_t part = std::min(into.size(), buffer_.size() - at_);
      std::memcpy(into.data(), buffer_.data() + at_, part);
      at_ += part;
      into = into.subspan(part);
    }
    return ok();
  }
  Result<std::uint32_t> u32() {
    std::array<unsigned char, 4> bytes{};
    BOOST_OUTCOME_TRY(take({reinterpret_cast<char*>(bytes.data()), bytes.size()}));
    return bytes[0] | static_cast<std::uint32_t>(bytes[1]) << 8 | static_cast<std::uint32_t>(bytes[2]) << 16 |
           static_cast<std::uint32_t>(bytes[3]) << 24;
  }
  Result<std::string> text(std::uint32_t bytes, std::string_view what) {
    if (bytes > kMaxTextLength)
      return error(fmt::format("{} of {} bytes is longer than the limit of {}", what, bytes, kMaxTextLength));
    std::string text(bytes, '\0');
    BOOST_OUTCOME_TRY(take(text));
    return text;
  }
  // Continues at byte `to` of the file.
  void skip_to(std::uint64_t to) {
    start_ = to;
    at_ = 0;
    buffer_.clear();
  }

  Status read_format() {
    BOOST_OUTCOME_TRY(const std::string magic, text(4, "the magic"));
    if (magic == "lmgg") {
      format_ = Format::kGgml;
      return ok();
    }
    if (magic == "GGUF") return error("this is a GGUF file", "use `gguf:` to read it");
    if (magic != "fmgg" && magic != "tjgg")
      return error(fmt::format("the magic is {}, not that of a GGML, GGMF, or GGJT file", quoted_name(magic)));
    format_ = magic == "fmgg" ? Format::kGgmf : Format::kGgjt;
    BOOST_OUTCOME_TRY(version_, u32());
    const std::uint32_t last = format_ == Format::kGgmf ? 1 : 3;
    if (version_ < 1 || version_ > last)
      return error(fmt::format("{} version {} is not supported (supported: 1 to {})", format_name(), version_, last));
    return ok();
  }

  Status read_parameters() {
    for (std::uint32_t* each :
         {&p_.tokens, &p_.embedding, &p_.multiple, &p_.heads, &p_.layers, &p_.rotated, &p_.file_type}) {
      BOOST_OUTCOME_TRY(*each, u32());
    }
    if (p_.file_type >= std::size(kFileTypes) || kFileTypes[p_.file_type].empty())
      return error(fmt::format("file type {} is unknown", p_.file_type));
    if (p_.heads == 0 || p_.tokens < 3 || p_.tokens > kMaxTokens)
      return error(fmt::format("{} heads and {} tokens do not match any model", p_.heads, p_.tokens));
    return ok();
  }

  // Rejects block formats that are no longer in use; the format of blocks changed twice.
  Status check_types() const {
    constexpr std::uint32_t kChangedLast[] = {2, 3, 4, 7};  // Q4_0, Q4_1, and Q8_0
    const bool is_old = format_ != Format::kGgjt || version_ < 2;
    const bool is_quantized = p_.file_type > 1;
    const bool changed_last = version_ == 2 && std::ranges::count(kChangedLast, p_.file_type) != 0;
    if (!is_quantized || (!is_old && !changed_last)) return ok();
    return input_error(file_->path(),
                       fmt::format("its {} blocks use an outdated layout: {} version {}", kFileTypes[p_.file_type],
                                   format_name(), version_),
                       "quantize the model again, from its F16 file or its checkpoint");
  }

  Status read_vocabulary() {
    if (p_.tokens > left() / 4)
      return error(fmt::format("{} tokens do not fit in the remaining {} bytes", p_.tokens, left()));
    for (std::uint32_t id = 0; id < p_.tokens; ++id) {
      BOOST_OUTCOME_TRY(const std::uint32_t bytes, u32());
      BOOST_OUTCOME_TRY(std::string token, text(bytes, "a token"));
      std::uint32_t score = 0;
      if (format_ != Format::kGgml) {
        BOOST_OUTCOME_TRY(score, u32());
      }
      add_token(id, std::move(token), score);
    }
    return ok();
  }

  void add_token(std::uint32_t id, std::string token, std::uint32_t score) {
    constexpr std::string_view kSpecial[] = {"<unk>", "<s>", "</s>"};
    enum Kind : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6 };
    std::int32_t kind = kNormal;
    if (id < std::size(kSpecial)) {
      token = kSpecial[id];
      kind = id == 0 ? kUnknown : kControl;
    } else if (token.empty()) {
      kind = kControl;
    } else if (id <= 258 && token.size() == 1) {
      token = fmt::format("<0x{:02X}>", static_cast<unsigned char>(token[0]));
      kind = kByte;
    } else {
      std::string marked;
      for (const char letter : token) marked += letter == ' ' ? std::string("\u2581") : std::string(1, letter);
      token = std::move(marked);
    }
    tokens_.bytes += metadata_string(token).bytes;
    scores_.bytes += metadata_float(MetadataType::kFloat32, std::bit_cast<float>(score)).bytes;
    kinds_.bytes += metadata_unsigned(MetadataType::kInt32, static_cast<std::uint64_t>(kind)).bytes;
  }

  Status read_tensors(Model& model) {
    while (left() != 0) {
      if (model.tensors.size() == kMaxTensors) return error("there are too many tensors");
      BOOST_OUTCOME_TRY(read_tensor(model.tensors.emplace_back()));
    }
    return ok();
  }

  Status read_tensor(Tensor& tensor) {
    BOOST_OUTCOME_TRY(const std::uint32_t rank, u32());
    BOOST_OUTCOME_TRY(const std::uint32_t name_bytes, u32());
    BOOST_OUTCOME_TRY(const std::uint32_t type, u32());
    if (rank < 1 || rank > 4) return error(fmt::format("a tensor has {} dimensions; 1 to 4 are possible", rank));
    Shape shape{rank, {1, 1, 1, 1}};
    for (std::uint32_t i = 0; i < rank; ++i) {
      BOOST_OUTCOME_TRY(shape.dims[i], u32());
    }
    BOOST_OUTCOME_TRY(const std::string name, text(name_bytes, "a tensor name"));
    tensor.name = new_name(name);
    if (tensor.name.empty())
      return error(fmt::format("tensor {} is not a LLaMA tensor", quoted_name(name)),
                   "other architectures of that time are not supported");
    tensor.type = find_type(type);
    if (!tensor.type) return error(fmt::format("tensor {} has unknown type {}", quoted_name(name), type));
    const std::uint64_t begin =
        format_ == Format::kGgjt ? (position() + kAlignment - 1) / kAlignment * kAlignment : position();
    std::uint64_t elements = 1;
    for (std::uint32_t i = 0; i < rank; ++i)
      if (__builtin_mul_overflow(elements, shape.dims[i], &elements))
        return error(fmt::format("tensor {} has too many elements", quoted_name(name)));
    const auto bytes = bytes_of(*tensor.type, elements);
    if (!bytes) return error(fmt::format("tensor {}: {}", quoted_name(name), bytes.error().what));
    if (begin > file_->bytes() || bytes.value() > file_->bytes() - begin)
      return error(fmt::format("tensor {} of {} bytes does not fit in the remaining {} bytes", quoted_name(name),
                               bytes.value(), left()));
    if (name == "layers.0.feed_forward.w1.weight") feed_forward_ = shape.dims[1];
    const auto extent = expressions::extent(*tensor.type, shape, Extent{file_->describe(), begin, bytes.value()});
    if (!extent) return error(fmt::format("tensor {}: {}", quoted_name(name), extent.error().what));
    tensor.expression = extent.value();
    skip_to(begin + bytes.value());
    return ok();
  }

  Status describe(Model& model) const {
    if (feed_forward_ == 0)
      return input_error(file_->path(), "tensor 'layers.0.feed_forward.w1.weight' is missing",
                         "check that this is a LLaMA model");
    const std::uint64_t groups = options_.query_groups;
    const bool fits = groups == 1 || (groups != 0 && p_.heads % groups == 0 && p_.heads / groups <= 255);
    if (!fits)
      return error_at(options_.origin, fmt::format("query_groups is {}, but the model has {} heads", groups, p_.heads),
                      "use 8 for LLaMA 2 70B, otherwise 1");
    Metadata& m = model.metadata;
    const auto number = [&](const char* key, std::uint64_t value) {
      m.set_at_end(key, metadata_unsigned(MetadataType::kUint32, value));
    };
    m.set_at_end("general.architecture", metadata_string("llama"));
    m.set_at_end("general.name", metadata_string(options_.name.value_or(fs::path(options_.file).filename().string())));
    m.set_at_end("general.description",
                 metadata_string(options_.description.value_or(fmt::format(
                     "converted from legacy {}v{} {} format", format_name(), version_, kFileTypes[p_.file_type]))));
    number("general.file_type", p_.file_type);
    number("llama.context_length", options_.context_length);
    number("llama.embedding_length", p_.embedding);
    number("llama.block_count", p_.layers);
    number("llama.feed_forward_length", feed_forward_);
    number("llama.rope.dimension_count", p_.embedding / p_.heads);
    number("llama.attention.head_count", p_.heads);
    number("llama.attention.head_count_kv", p_.heads / options_.query_groups);
    m.set_at_end("llama.attention.layer_norm_rms_epsilon", metadata_float(MetadataType::kFloat32, options_.epsilon));
    m.set_at_end("tokenizer.ggml.model", metadata_string("llama"));
    m.set_at_end("tokenizer.ggml.pre", metadata_string("default"));
    m.set_at_end("tokenizer.ggml.tokens", array_of(MetadataType::kString, tokens_));
    m.set_at_end("tokenizer.ggml.scores", array_of(MetadataType::kFloat32, scores_));
    m.set_at_end("tokenizer.ggml.token_type", array_of(MetadataType::kInt32, kinds_));
    number("tokenizer.ggml.unknown_token_id", 0);
    number("tokenizer.ggml.bos_token_id", 1);
    number("tokenizer.ggml.eos_token_id", 2);
    if (format_ == Format::kGgml)
      model.warnings.push_back(file_->path() + ": files of this age have no token scores, so all scores are 0");
    return ok();
  }

  struct Items {
    std::string bytes;
  };
  // Returns an array with one item per token.
  MetadataValue array_of(MetadataType element, const Items& items) const {
    MetadataValue array = metadata_array(element, {});
    array.bytes.resize(4);
    for (unsigned i = 0; i < 8; ++i) array.bytes += static_cast<char>(static_cast<std::uint64_t>(p_.tokens) >> (8 * i));
    array.bytes += items.bytes;
    return array;
  }

  std::string_view format_name() const { return kFormatNames[static_cast<std::size_t>(format_)]; }

  static const TypeInfo* find_type(std::uint32_t number) {
    const auto found = std::ranges::find(built_in_types(), number, [](const TypeInfo& type) { return type.id; });
    return found == built_in_types().end() ? nullptr : &*found;
  }

  const SourceOptions& options_;
  std::shared_ptr<const ByteSource> file_;
  std::vector<char> buffer_;
  std::uint64_t start_ = 0;  // file offset of the buffer
  std::size_t at_ = 0;       // offset in the buffer
  Format format_ = Format::kGgml;
  std::uint32_t version_ = 1;
  Parameters p_;
  std::uint64_t feed_forward_ = 0;
  Items tokens_, scores_, kinds_;
};

}  // namespace

Result<Model> read_model(const SourceOptions& options) {
  BOOST_OUTCOME_TRY(auto file, open_source(options.file));
  return Reader(options, std::move(file)).read();
}

}  // namespace ggml
}  // namespace ggufmill
