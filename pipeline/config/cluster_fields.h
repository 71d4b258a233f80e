#pragma once
// The `cluster:` block of a pipeline file.

#include "pipeline/config/fields.h"
#include "pipeline/plan/job.h"

namespace ggufmill {

FieldSpec cluster_field();
// Converts a node that has passed the lint of cluster_field().
ClusterOptions cluster_options(const ConfigNode& node);

}  // namespace ggufmill
