#pragma once
// Claims: small files beside the outputs of a cluster job that name the job. Its parts hold no locks, since they run on
// many machines, so this is how a run on one machine learns of them.

#include <optional>
#include <string>

#include "pipeline/core/error.h"

namespace ggufmill {

// The file of a job's folder that describes the job.
inline constexpr const char* kJobFile = "job.json";

struct OutputClaim {
  std::string key;           // of the job: "IDENTITY.ID"
  std::string folder;        // of the job, absolute
  std::string shown_folder;  // what its verbs take: of the matrix that the job is part of, or the same
};

inline constexpr std::string_view kClaimEnd = ".job";
// `FOLDER/.NAME.ggufmill-KEY.job` for the output FOLDER/NAME.
std::string claim_path(const std::string& output, const std::string& key);

Status write_claim(const std::string& output, const OutputClaim& claim);
// None for a file that holds no claim.
std::optional<OutputClaim> read_claim(const std::string& path);
// False once the job's folder is gone or holds another job. A folder that cannot be read counts as the job's.
bool is_held(const OutputClaim& claim);
// Does nothing where there is none.
Status remove_claim(const std::string& output, const std::string& key);

}  // namespace ggufmill
