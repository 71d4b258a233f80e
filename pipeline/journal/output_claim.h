#pragma once
// Claims: small files next to the outputs of a cluster job that name the job. The parts of a job hold no locks, since
// they run on many machines, so claims are how a run on one machine detects them.

#include <optional>
#include <string>

#include "pipeline/core/error.h"

namespace ggufmill {

// Name of the file in a job's folder that describes the job.
inline constexpr const char* kJobFile = "job.json";

struct OutputClaim {
  std::string key;           // of the job: "IDENTITY.ID"
  std::string folder;        // of the job, absolute
  std::string shown_folder;  // folder to pass to the job verbs: that of the matrix the job is part of, else the same
};

inline constexpr std::string_view kClaimEnd = ".job";
// Returns `FOLDER/.NAME.ggufmill-KEY.job` for the output FOLDER/NAME.
std::string claim_path(const std::string& output, const std::string& key);

Status write_claim(const std::string& output, const OutputClaim& claim);
// Returns nullopt if the file does not contain a claim.
std::optional<OutputClaim> read_claim(const std::string& path);
// Returns false if the job's folder no longer exists or contains another job. A folder that cannot be read still counts
// as the job's.
bool is_held(const OutputClaim& claim);
// Does nothing if there is no claim.
Status remove_claim(const std::string& output, const std::string& key);

}  // namespace ggufmill
