// Seeds, and deterministic damage.

#include <fmt/format.h>

#include <algorithm>

#include "tests/fuzz/gguf_entry.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/hostile_gguf.h"

namespace ggufmill {
namespace {

// splitmix64 (Steele, Lea, Flood, 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t end) { return end == 0 ? 0 : static_cast<std::size_t>(next() % end); }

 private:
  std::uint64_t state_;
};

// Numbers near which readers break: around powers of two, and the wraps of 64-bit products.
std::uint64_t awkward_number(Random& random) {
  const std::uint64_t power = std::uint64_t{1} << random.below(64);
  switch (random.below(5)) {
    case 0:
      return power;
    case 1:
      return power - 1;
    case 2:
      return ~std::uint64_t{0} - random.below(64);
    case 3:
      return ~std::uint64_t{0} / (1 + random.below(64)) + random.below(3);
    default:
      return random.below(64);
  }
}

void damage_once(std::string& bytes, Random& random) {
  const std::size_t at = random.below(bytes.size());
  switch (random.below(6)) {
    case 0:
      bytes[at] = static_cast<char>(random.next());
      break;
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, 1 + random.below(16));
      break;
    case 4:
      bytes.insert(at, bytes.substr(random.below(bytes.size()), random.below(64)));
      break;
    default: {
      const std::uint64_t number = awkward_number(random);
      const std::size_t width = std::min<std::size_t>(random.below(2) ? 4 : 8, bytes.size() - at);
      bytes.replace(at, width, reinterpret_cast<const char*>(&number), width);
    }
  }
}

GgufBuilder good_file(std::uint32_t version, bool big_endian) {
  GgufBuilder builder;
  builder.version = version;
  builder.big_endian = big_endian;
  builder.metadata = every_metadata_type();
  builder.add_tensor("token_embd.weight", {256, 2}, "Q4_K").add_tensor("blk.0.attn_norm.weight", {8});
  return builder.add_tensor("empty", {0, 4}).add_tensor("blk.0.ffn_down.weight", {32, 2, 2, 1}, "Q8_0");
}

}  // namespace

std::vector<std::string> gguf_seeds() {
  std::vector<std::string> seeds;
  for (const std::uint32_t version : {1u, 2u, 3u})
    for (const bool big_endian : {false, true}) seeds.push_back(good_file(version, big_endian).build());
  seeds.push_back(good_file(3, false).set_alignment(64).build());
  for (HostileFile& file : hostile_files())
    if (file.bytes.size() < 4096) seeds.push_back(std::move(file.bytes));
  return seeds;
}

std::string damaged(std::string bytes, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t times = 1 + random.below(4); times > 0 && !bytes.empty(); --times) damage_once(bytes, random);
  return bytes;
}

}  // namespace ggufmill
