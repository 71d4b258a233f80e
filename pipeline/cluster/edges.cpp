#include "pipeline/cluster/edges.h"

#include <algorithm>
#include <unordered_map>

#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

constexpr std::size_t kHeader = ~std::size_t{0};  // denotes the seal, which writes the header

struct Segment {
  std::uint64_t offset = 0, bytes = 0;
  std::size_t part = 0;
};

// Returns the segments of each file, sorted by offset.
std::vector<std::vector<Segment>> segments_of(const Plan& plan, const std::vector<std::size_t>& cuts) {
  std::vector<std::vector<Segment>> files;
  std::vector<std::size_t> first_files;
  for (const PlannedOutput& output : plan.outputs) {
    first_files.push_back(files.size());
    for (const OutputFile& file : output.files) files.push_back({{0, file.header.size(), kHeader}});
  }
  for (std::size_t part = 0; part + 1 < cuts.size(); ++part)
    for (std::size_t i = cuts[part]; i < cuts[part + 1]; ++i) {
      const Unit& unit = plan.units[i];
      const Step& step = plan.steps[unit.step];
      for (const Encoding& encoding : step.encodings) {
        const std::uint64_t row = row_bytes(*encoding.type, step.expression->shape);
        for (const Place& place : encoding.places)
          files[first_files[place.output] + place.file].push_back(
              {place.offset + unit.first_row * row, unit.rows * row, part});
      }
    }
  for (std::vector<Segment>& segments : files) std::ranges::sort(segments, {}, &Segment::offset);
  return files;
}

// Returns the chunks with bytes of two writers. Only the first and last chunk of a segment can be shared.
std::unordered_map<std::uint64_t, bool> shared_chunks(const std::vector<Segment>& segments) {
  std::unordered_map<std::uint64_t, std::size_t> owners;
  std::unordered_map<std::uint64_t, bool> shared;
  for (const Segment& segment : segments) {
    if (segment.bytes == 0) continue;
    for (const std::uint64_t chunk : {segment.offset / kChunkBytes, (segment.offset + segment.bytes - 1) / kChunkBytes})
      if (const auto [owner, is_new] = owners.emplace(chunk, segment.part); owner->second != segment.part)
        shared[chunk] = true;
  }
  return shared;
}

void add_hem(PartPlaces& places, std::size_t file, std::uint64_t offset, std::uint64_t end) {
  places.edges.push_back({file, offset, end - offset, places.edge_bytes});
  places.edge_bytes += end - offset;
}

}  // namespace

std::vector<PartPlaces> places_of(const Plan& plan, const std::vector<std::size_t>& cuts, std::size_t first,
                                  std::size_t count) {
  std::vector<PartPlaces> parts(count);
  const std::vector<std::vector<Segment>> files = segments_of(plan, cuts);
  for (std::size_t file = 0; file < files.size(); ++file) {
    const auto shared = shared_chunks(files[file]);
    for (const Segment& segment : files[file]) {
      if (segment.bytes == 0 || segment.part < first || segment.part - first >= count) continue;
      PartPlaces& places = parts[segment.part - first];
      if (places.files.empty() || places.files.back() != file) places.files.push_back(file);
      const std::uint64_t end = segment.offset + segment.bytes;
      const std::uint64_t first_chunk = segment.offset / kChunkBytes, last_chunk = (end - 1) / kChunkBytes;
      if (shared.count(first_chunk))
        add_hem(places, file, segment.offset, std::min(end, (first_chunk + 1) * kChunkBytes));
      if (last_chunk != first_chunk && shared.count(last_chunk)) add_hem(places, file, last_chunk * kChunkBytes, end);
    }
  }
  return parts;
}

std::vector<Gap> gaps_of(const Plan& plan) {
  std::vector<Gap> gaps;
  const std::vector<std::vector<Segment>> files = segments_of(plan, {0, plan.units.size()});
  const std::vector<StoredFile> stored = stored_files(plan);
  for (std::size_t file = 0; file < files.size(); ++file) {
    std::uint64_t end = 0;
    for (const Segment& segment : files[file]) {
      if (segment.offset > end) gaps.push_back({file, end, segment.offset - end});
      end = std::max(end, segment.offset + segment.bytes);
    }
    if (stored[file].bytes > end) gaps.push_back({file, end, stored[file].bytes - end});
  }
  return gaps;
}

}  // namespace ggufmill
