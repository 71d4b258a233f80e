#include "pipeline/graph/flight.h"

namespace ggufmill {
namespace {

// Where nothing is converted only the byte order may have to change: that is one tile.
std::uint32_t tile_count(const Slab& slab, const RouteWork& work) {
  if (!work.converts) return work.route->source.big_endian ? 1 : 0;
  return static_cast<std::uint32_t>((slab.rows + work.tile_rows - 1) / work.tile_rows);
}

}  // namespace

std::uint64_t Flight::target_offset(std::size_t index) const {
  const TargetWork& target = work->targets[index];
  const bool carried = target.kind == TargetKind::kCarry;
  return target.target->offset + (carried ? slab.first_byte : slab.first_row * target.row_bytes);
}

std::span<const std::byte> Flight::target_bytes(std::size_t index) const {
  return work->targets[index].kind == TargetKind::kCarry ? source.span() : outputs[index].span();
}

Result<std::unique_ptr<Flight>> make_flight(const Slab& slab, std::uint64_t ordinal, const RouteWork& work,
                                            bool direct) {
  auto flight = std::make_unique<Flight>();
  flight->slab = slab;
  flight->ordinal = ordinal;
  flight->work = &work;
  flight->tiles = tile_count(slab, work);
  flight->tiles_left = flight->tiles;
  flight->writes_left = static_cast<std::uint32_t>(work.targets.size());
  const auto phase = [direct](std::uint64_t offset) { return direct ? offset % kDirectAlignment : 0; };
  const std::uint64_t offset = work.route->source.offset + slab.first_byte;
  BOOST_OUTCOME_TRY(flight->source, Buffer::allocate(slab.source_bytes, phase(offset)));
  BOOST_OUTCOME_TRY(flight->long_rows, Buffer::allocate(slab.rows * work.long_row_bytes));
  BOOST_OUTCOME_TRY(flight->measured_rows, Buffer::allocate(slab.rows * work.measured_row_bytes));
  flight->outputs.resize(work.targets.size());
  for (std::size_t i = 0; i < work.targets.size(); ++i) {
    if (work.targets[i].kind == TargetKind::kCarry) continue;
    BOOST_OUTCOME_TRY(flight->outputs[i],
                      Buffer::allocate(slab.rows * work.targets[i].row_bytes, phase(flight->target_offset(i))));
  }
  return flight;
}

}  // namespace ggufmill
