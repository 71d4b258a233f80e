#pragma once
// The hub's description of a model: the commit that a revision refers to, and its files.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/remote/address.h"
#include "pipeline/remote/requests.h"

namespace ggufmill::remote {

struct Listing {
  std::string commit;
  std::vector<std::string> files;  // paths with folders, sorted
};

// Queries the hub (GET /api/models/ORG/NAME/revision/REVISION). Listings of commits are cached, since commits do not
// change. Exit codes as for RemoteSource::open(). Thread-safe.
Result<std::shared_ptr<const Listing>> list_model(const Address& address, const Settings& settings);

}  // namespace ggufmill::remote
