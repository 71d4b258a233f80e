#pragma once
// `cluster:` of a pipeline file.

#include "pipeline/config/fields.h"
#include "pipeline/plan/job.h"

namespace ggufmill {

FieldSpec cluster_field();
// Of a node that has passed the lint of that.
ClusterOptions cluster_options(const ConfigNode& node);

}  // namespace ggufmill
