#include "pipeline/cluster/edges.h"

#include <algorithm>
#include <unordered_map>

#include "pipeline/io/store_scheme.h"
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
std::unordered_map<std::uint64_t, bool> shared_chunks(const std::vector<Segment>& segments, std::uint64_t size) {
  std::unordered_map<std::uint64_t, std::size_t> owners;
  std::unordered_map<std::uint64_t, bool> shared;
  for (const Segment& segment : segments) {
    if (segment.bytes == 0) continue;
    for (const std::uint64_t chunk : {segment.offset / size, (segment.offset + segment.bytes - 1) / size})
      if (const auto [owner, is_new] = owners.emplace(chunk, segment.part); owner->second != segment.part)
        shared[chunk] = true;
  }
  return shared;
}

void add_edge(PartPlaces& places, std::size_t file, std::uint64_t offset, std::uint64_t end) {
  places.edges.push_back({file, offset, end - offset, places.edge_bytes});
  places.edge_bytes += end - offset;
}

}  // namespace

const SharedUploads* uploads_of(const Plan& plan) {
  const auto scheme = find_store_scheme(stored_files(plan));
  return scheme ? scheme.value()->shared_uploads() : nullptr;
}

std::vector<PartPlaces> places_of(const Plan& plan, const std::vector<std::size_t>& cuts, std::size_t first,
                                  std::size_t count) {
  std::vector<PartPlaces> parts(count);
  const std::vector<std::vector<Segment>> files = segments_of(plan, cuts);
  const std::vector<StoredFile> stored = stored_files(plan);
  const SharedUploads* const uploads = uploads_of(plan);
  for (std::size_t file = 0; file < files.size(); ++file) {
    const std::uint64_t size = uploads ? uploads->chunk_bytes(stored[file].bytes) : kChunkBytes;
    const auto shared = shared_chunks(files[file], size);
    for (const Segment& segment : files[file]) {
      if (segment.bytes == 0 || segment.part < first || segment.part - first >= count) continue;
      PartPlaces& places = parts[segment.part - first];
      if (places.files.empty() || places.files.back() != file) places.files.push_back(file);
      const std::uint64_t end = segment.offset + segment.bytes;
      const std::uint64_t first_chunk = segment.offset / size, last_chunk = (end - 1) / size;
      if (shared.count(first_chunk)) add_edge(places, file, segment.offset, std::min(end, (first_chunk + 1) * size));
      if (last_chunk != first_chunk && shared.count(last_chunk)) add_edge(places, file, last_chunk * size, end);
      if (!uploads) continue;
      for (std::uint64_t chunk = first_chunk; chunk <= last_chunk; ++chunk) {
        const UploadedChunk own{file, chunk, ""};
        if (!shared.count(chunk) && (places.chunks.empty() || places.chunks.back() != own))
          places.chunks.push_back(own);
      }
    }
  }
  return parts;
}

std::vector<PlannedWrite> writes_outside_edges(const Plan& plan, UnitRange range, const PartPlaces& places) {
  std::vector<PlannedWrite> writes;
  for (const PlannedWrite& write : planned_writes(plan, range.first, range.last)) {
    const std::uint64_t row = std::max<std::uint64_t>(write.bytes / std::max<std::uint64_t>(write.rows, 1), 1);
    const auto add = [&](std::uint64_t from, std::uint64_t to) {
      if (from >= to) return;
      const std::uint64_t first = (from - write.offset) / row, last = (to - 1 - write.offset) / row;
      writes.push_back({write.file, from, to - from, write.row + first, last - first + 1});
    };
    std::uint64_t at = write.offset;
    const std::uint64_t end = write.offset + write.bytes;
    const auto is_before = [&](const Edge& edge, const auto& place) {
      return std::pair(edge.file, edge.offset + edge.bytes) <= place;
    };
    auto edge = std::lower_bound(places.edges.begin(), places.edges.end(), std::pair(write.file, at), is_before);
    for (; edge != places.edges.end() && edge->file == write.file && edge->offset < end; ++edge) {
      add(at, edge->offset);
      at = edge->offset + edge->bytes;
    }
    add(at, end);
  }
  return writes;
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
