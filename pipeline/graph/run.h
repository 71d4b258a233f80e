#pragma once
// One run, as the engines see it. Internal to graph/.

#include <string>
#include <vector>

#include "pipeline/graph/flight.h"
#include "pipeline/graph/run_files.h"
#include "pipeline/graph/run_state.h"
#include "pipeline/graph/slab_feed.h"
#include "pipeline/io/io.h"

namespace ggufmill {

struct Run {
  const Plan& plan;
  const std::vector<RouteWork>& work;  // of each route
  const RunFiles& files;
  SlabFeed& feed;
  Budget& budget;
  RunState& state;
  unsigned threads;
  Profile* profile;  // null: not wanted
};

// Carry every slab of the feed from the inputs to the outputs. Errors go to run.state. Both return when nothing is
// under way any more.

// The specification: one slab after the other, blocking I/O, the calling thread alone.
void run_simple(Run& run);

// The flow graph: reads ahead, conversions on run.threads threads, writes behind.
void run_flow(Run& run, IoService& io);

}  // namespace ggufmill
