#include "pipeline/graph/flight.h"

#include <algorithm>

#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

// Where nothing is converted only the byte order may have to change: that is one tile.
std::uint32_t tile_count(const Slab& slab, const RouteWork& work) {
  if (!work.converts) return work.route->source.big_endian ? 1 : 0;
  return static_cast<std::uint32_t>((slab.rows + work.tile_rows - 1) / work.tile_rows);
}

std::uint64_t offset_of(const Slab& slab, const std::vector<RouteWork>& works) {
  return works[slab.route].route->source.offset + slab.first_byte;
}

// Hands out pieces of memory one after the other, each from a page of its own.
class Carver {
 public:
  Carver(std::byte* memory, bool direct) : memory_(memory), direct_(direct) {}

  // `offset`: in the file that the piece is read from or written to.
  std::span<std::byte> piece(std::uint64_t bytes, std::uint64_t offset) {
    if (bytes == 0) return {};
    const std::uint64_t start = used_ + (direct_ ? offset % kDirectAlignment : 0);
    used_ = (start + bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    return {memory_ + start, bytes};
  }

 private:
  std::byte* memory_;
  bool direct_;
  std::uint64_t used_ = 0;
};

void carve(Leg& leg, Carver& carver) {
  const std::uint64_t rows = leg.slab.rows;
  leg.long_rows = carver.piece(rows * leg.work->long_row_bytes, 0);
  leg.measured_rows = carver.piece(rows * leg.work->measured_row_bytes, 0);
  for (std::size_t i = 0; i < leg.outputs.size(); ++i)
    if (leg.work->targets[i].kind != TargetKind::kCarry)
      leg.outputs[i] = carver.piece(rows * leg.work->targets[i].row_bytes, leg.target_offset(i));
}

void carve(Flight& flight, std::uint64_t source_bytes, Carver& carver) {
  flight.source = carver.piece(source_bytes, flight.source_offset);
  for (Leg& leg : flight.legs) {
    const std::uint64_t start = leg.work->route->source.offset + leg.slab.first_byte - flight.source_offset;
    leg.source = flight.source.subspan(start, leg.slab.source_bytes);
    carve(leg, carver);
  }
}

void add_leg(Flight& flight, const Slab& slab, const RouteWork& work) {
  Leg& leg = flight.legs.emplace_back();
  leg.slab = slab;
  leg.work = &work;
  leg.outputs.resize(work.targets.size());
  leg.first_tile = flight.tiles;
  leg.tiles = tile_count(slab, work);
  flight.tiles += leg.tiles;
  flight.writes_left += static_cast<std::uint32_t>(work.targets.size());
}

}  // namespace

std::uint64_t Leg::target_offset(std::size_t index) const {
  const TargetWork& target = work->targets[index];
  const bool carried = target.kind == TargetKind::kCarry;
  return target.target->offset + (carried ? slab.first_byte : slab.first_row * target.row_bytes);
}

std::span<const std::byte> Leg::target_bytes(std::size_t index) const {
  return work->targets[index].kind == TargetKind::kCarry ? source : outputs[index];
}

Leg& Flight::leg_of(std::uint32_t tile) {
  const auto after = std::upper_bound(legs.begin(), legs.end(), tile,
                                      [](std::uint32_t t, const Leg& leg) { return t < leg.first_tile; });
  return *std::find_if(std::make_reverse_iterator(after), legs.rend(), [](const Leg& leg) { return leg.tiles != 0; });
}

Result<std::unique_ptr<Flight>> make_flight(const SlabBatch& batch, std::uint64_t ordinal,
                                            const std::vector<RouteWork>& works, bool direct) {
  auto flight = std::make_unique<Flight>();
  flight->ordinal = ordinal;
  flight->cost = batch.cost;
  flight->source_offset = offset_of(batch.slabs.front(), works);
  const std::uint64_t end = offset_of(batch.slabs.back(), works) + batch.slabs.back().source_bytes;
  flight->legs.reserve(batch.slabs.size());
  for (const Slab& slab : batch.slabs) add_leg(*flight, slab, works[slab.route]);
  flight->tiles_left = flight->tiles;
  BOOST_OUTCOME_TRY(flight->memory, Buffer::allocate(batch.cost));
  Carver carver(flight->memory.data(), direct);
  carve(*flight, end - flight->source_offset, carver);
  return flight;
}

}  // namespace ggufmill
