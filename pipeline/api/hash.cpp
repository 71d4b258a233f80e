#include "pipeline/api/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <sstream>

#include "pipeline/core/digest.h"
#include "pipeline/core/text.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/output_store.h"

namespace ggufmill {
namespace {

constexpr std::size_t kReadBytes = 4 << 20;
constexpr std::uint64_t kMaxListBytes = 256 << 20;

// uuid5(NAMESPACE_URL, "en.wikipedia.org/wiki/Llama.cpp"), the namespace that gguf-hash uses for its UUIDs.
constexpr std::array<unsigned char, 16> kNamespace = {0xef, 0x00, 0x12, 0x06, 0xda, 0xdc, 0x5f, 0x6d,
                                                      0xa1, 0x5f, 0x33, 0x59, 0xe5, 0x77, 0xd4, 0xe5};

class WeightsDigest {
 public:
  explicit WeightsDigest(HashKind kind) : kind_(kind) {
    if (kind == HashKind::kXxh64) {
      xxh_.reset(XXH64_createState());
      if (!xxh_) throw std::bad_alloc();
      XXH64_reset(xxh_.get(), 0);
      return;
    }
    digest_.emplace(kind == HashKind::kSha256 ? DigestKind::kSha256 : DigestKind::kSha1);
    if (kind == HashKind::kUuid) add(std::as_bytes(std::span(kNamespace)));
  }

  HashKind kind() const { return kind_; }

  void add(std::span<const std::byte> bytes) {
    if (xxh_)
      XXH64_update(xxh_.get(), bytes.data(), bytes.size());
    else
      digest_->add(bytes);
  }

  std::string digits() {
    if (xxh_) return fmt::format("{:016x}", XXH64_digest(xxh_.get()));
    std::vector<std::uint8_t> bytes = digest_->bytes();
    if (kind_ != HashKind::kUuid) return hex_of(bytes);
    bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x50);  // version 5
    bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);  // variant of RFC 9562
    std::string text = hex_of(std::span(bytes).first(16));
    for (const std::size_t at : {8, 13, 18, 23}) text.insert(at, "-");
    return text;
  }

 private:
  struct Free {
    void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
  };
  HashKind kind_;
  std::unique_ptr<XXH64_state_t, Free> xxh_;
  std::optional<Digest> digest_;
};

// Several digests of the same data.
class Digests {
 public:
  Digests(const std::vector<HashKind>& kinds, bool with_uuid) {
    for (const HashKind kind : kinds)
      if (with_uuid || kind != HashKind::kUuid) digests_.emplace_back(kind);
  }
  void add(std::span<const std::byte> bytes) {
    for (WeightsDigest& digest : digests_) digest.add(bytes);
  }
  void tell(const std::string& of, std::vector<Hash>& hashes) {
    for (WeightsDigest& digest : digests_) hashes.push_back({digest.kind(), digest.digits(), of});
  }

 private:
  std::vector<WeightsDigest> digests_;
};

std::optional<HashKind> kind_named(std::string_view name) {
  const auto found = std::ranges::find(kHashNames, name);
  if (found == std::end(kHashNames)) return {};
  return static_cast<HashKind>(found - std::begin(kHashNames));
}

}  // namespace

Result<std::vector<Hash>> hash_model(const Model& model, const std::string& path, const HashOptions& options) {
  std::vector<Hash> hashes;
  Digests all(options.kinds, true);
  std::map<const SourceFile*, std::shared_ptr<const ByteSource>> files;
  std::vector<std::byte> buffer(kReadBytes);
  for (const Tensor& tensor : model.tensors) {
    const Extent* extent = tensor.expression->as_extent();
    if (!extent)
      return usage_error(fmt::format("tensor {} is computed and has no bytes of its own", quoted_name(tensor.name)),
                         "hash a GGUF file or the safetensors files themselves");
    auto& file = files[extent->source.get()];
    if (!file) {
      BOOST_OUTCOME_TRY(file, ByteSource::open(*extent->source, IoMode::kCached));
    }
    Digests own(options.tensors ? options.kinds : std::vector<HashKind>{}, false);
    for (std::uint64_t done = 0; done < extent->bytes;) {
      if (options.stop && *options.stop) return interrupted();
      const std::span part(buffer.data(),
                           static_cast<std::size_t>(std::min<std::uint64_t>(kReadBytes, extent->bytes - done)));
      BOOST_OUTCOME_TRY(file->read(extent->offset + done, part));
      own.add(part);
      all.add(part);
      done += part.size();
    }
    own.tell(path + ":" + tensor.name, hashes);
  }
  for (const auto& [described, file] : files) {
    BOOST_OUTCOME_TRY(file->check_unchanged());
  }
  all.tell(path, hashes);
  return hashes;
}

Result<KnownHashes> read_hashes(const std::string& path) {
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(path, kMaxListBytes));
  KnownHashes known;
  std::istringstream lines(text);
  lines.exceptions(std::ios::badbit);  // rethrows std::bad_alloc
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    words.exceptions(std::ios::badbit);  // rethrows std::bad_alloc
    std::string kind, digits, of;
    if (words >> kind >> digits && std::getline(words >> std::ws, of))
      if (const auto named = kind_named(kind)) known.emplace(std::pair(*named, of), digits);
  }
  if (known.empty())
    return input_error(path, "has no hash of a known kind", "`ggufmill hash MODEL --all > FILE` writes them");
  return known;
}

HashKind strongest_of(const KnownHashes& known) {
  for (const HashKind kind : {HashKind::kSha256, HashKind::kSha1, HashKind::kXxh64})
    if (std::ranges::any_of(known, [kind](const auto& each) { return each.first.first == kind; })) return kind;
  return HashKind::kUuid;
}

Status compare_hashes(const std::vector<Hash>& hashes, const KnownHashes& known, const std::string& list) {
  std::size_t compared = 0, others = 0;
  for (const Hash& hash : hashes) {
    const auto wanted = known.find({hash.kind, hash.of});
    if (wanted == known.end()) continue;
    ++compared;
    others += wanted->second != hash.digits;
  }
  if (compared == 0)
    return Error{ExitCode::kVerification, list, "has no hash for this model",
                 "lines contain the path of the model, which must be given in the same form", ""};
  if (others != 0)
    return Error{ExitCode::kVerification, list, fmt::format("{} of {} hashes differ", others, compared), "", ""};
  return ok();
}

}  // namespace ggufmill
