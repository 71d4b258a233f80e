#include "pipeline/io/platform/uring.h"

namespace ggufmill {

std::string why_no_uring() { return "this ggufmill was built without liburing"; }

}  // namespace ggufmill
