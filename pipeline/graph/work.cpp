#include "pipeline/graph/work.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

bool is_f32(const TypeInfo& type) { return type.id == type_named("F32").id; }

Error no_kernel(const std::string& tensor, const Kernels& kernels, std::uint32_t operation, const TypeInfo& type) {
  Error error = kernels.missing(operation, type.id);
  error.what = fmt::format("tensor '{}': {}", tensor, error.what);
  return error;
}

// The place of `importance` among those of the route, which hold it once however many targets use it.
std::size_t index_of(std::vector<const Importance*>& importances, const Importance* importance) {
  const auto found = std::find(importances.begin(), importances.end(), importance);
  const auto index = static_cast<std::size_t>(found - importances.begin());
  if (found == importances.end()) importances.push_back(importance);
  return index;
}

Status bind_importance(RouteWork& work, TargetWork& target) {
  const std::uint32_t flags = target.encode.kernel->flags;
  const Importance* importance = target.tensor->importance.get();
  if (importance && flags & (GGUFMILL_NEEDS_IMPORTANCE | GGUFMILL_ACCEPTS_IMPORTANCE))
    target.importance = index_of(work.importances, importance);
  if (!importance && flags & GGUFMILL_NEEDS_IMPORTANCE)
    return usage_error(
        fmt::format("tensor '{}': {} needs importance weights", target.tensor->name, target.tensor->type->name),
        "add a stage `importance`, or choose another type for this tensor");
  return ok();
}

// What the error of a target is measured with.
Status bind_measure(RouteWork& work, TargetWork& target, const Kernels& kernels) {
  const TypeInfo& type = *target.tensor->type;
  const KernelChoice* decode = kernels.decode(type.id);
  if (!decode) return no_kernel(target.tensor->name, kernels, GGUFMILL_DECODE, type);
  target.decode = *decode;
  if (const Importance* importance = target.tensor->importance.get())
    target.weights = index_of(work.importances, importance);
  return ok();
}

Status bind_encode(RouteWork& work, TargetWork& target, const Kernels& kernels) {
  const TypeInfo& type = *target.tensor->type;
  target.row_bytes = work.route->shape.columns() / type.block_elements * type.block_bytes;
  work.converts = true;
  if (is_f32(type)) {
    target.kind = TargetKind::kDecode;
    work.f32_target = work.targets.size();
    return ok();
  }
  const KernelChoice* encode = kernels.encode(type.id);
  if (!encode) return no_kernel(target.tensor->name, kernels, GGUFMILL_ENCODE, type);
  target.kind = TargetKind::kEncode;
  target.encode = *encode;
  return bind_importance(work, target);
}

Status bind_decode(RouteWork& work, const Kernels& kernels) {
  const TypeInfo& type = *work.route->source.type;
  if (is_f32(type)) return ok();
  const KernelChoice* decode = kernels.decode(type.id);
  if (!decode) return no_kernel(work.route->name, kernels, GGUFMILL_DECODE, type);
  work.decode = *decode;
  return ok();
}

Result<RouteWork> bind_route(const Plan& plan, const Route& route, const Kernels& kernels) {
  RouteWork work;
  work.route = &route;
  work.row_bytes = route.shape.columns() / route.source.type->block_elements * route.source.type->block_bytes;
  for (const Target& target : route.targets) {
    TargetWork bound;
    bound.target = &target;
    bound.tensor = &tensor_of(plan, target);
    if (is_converted(plan, route, target)) {
      BOOST_OUTCOME_TRY(bind_encode(work, bound, kernels));
      if (plan.report.error && bound.kind == TargetKind::kEncode) {
        BOOST_OUTCOME_TRY(bind_measure(work, bound, kernels));
      }
    }
    work.targets.push_back(bound);
  }
  if (!work.converts) return work;
  const RouteCost cost(plan, route);
  work.long_row_bytes = cost.long_row_bytes();
  work.measured_row_bytes = cost.measured_row_bytes();
  work.tile_rows =
      std::max<std::uint64_t>(kTileBytes / sizeof(float) / std::max<std::uint64_t>(route.shape.columns(), 1), 1);
  BOOST_OUTCOME_TRY(bind_decode(work, kernels));
  return work;
}

}  // namespace

Result<std::vector<RouteWork>> bind_kernels(const Plan& plan, const Kernels& kernels) {
  std::vector<RouteWork> all;
  all.reserve(plan.routes.size());
  for (const Route& route : plan.routes) {
    BOOST_OUTCOME_TRY(auto work, bind_route(plan, route, kernels));
    all.push_back(std::move(work));
  }
  return all;
}

}  // namespace ggufmill
