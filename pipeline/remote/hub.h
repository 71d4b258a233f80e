#pragma once
// What a hub says of a model: which commit a revision is, and which files it has.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/remote/address.h"
#include "pipeline/remote/requests.h"

namespace ggufmill::remote {

struct Listing {
  std::string commit;
  std::vector<std::string> files;  // with their folders, sorted
};

// Asks the hub (GET /api/models/ORG/NAME/revision/REVISION). What is known of a commit is not asked for again: it does
// not change. Exit codes as RemoteSource::open(). Thread-safe.
Result<std::shared_ptr<const Listing>> list_model(const Address& address, const Settings& settings);

}  // namespace ggufmill::remote
