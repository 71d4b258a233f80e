#include "pipeline/cluster/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <optional>

#include "pipeline/core/text.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/system.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr int kTries = 20;  // of one part; each try resumes the previous one

// Returns a valid Kubernetes object name: letters, digits and dashes, at most 63 characters, of which the suffix takes
// up to 20.
std::string object_name(const ClusterJob& job, const char* what) {
  std::string name;
  for (const char c : job.name) {
    const auto letter = static_cast<unsigned char>(c);
    const char small = std::isalnum(letter) && letter < 128 ? static_cast<char>(std::tolower(letter)) : '-';
    if (small != '-' || (!name.empty() && name.back() != '-')) name += small;
  }
  name = name.substr(0, 30);
  while (name.ends_with('-')) name.pop_back();
  return fmt::format("ggufmill-{}{}{}-{}", name, name.empty() ? "" : "-", job.id, what);
}

// Returns the container: it runs the image's program, found through the image's PATH, with the threads and memory of
// the pod's control group.
json::object container(const ClusterJob& job, const KubernetesOptions& options, json::array arguments) {
  json::object resources;
  if (job.options.cpus != 0) resources["cpu"] = std::to_string(job.options.cpus);
  if (job.options.memory != 0) resources["memory"] = fmt::format("{}Mi", job.options.memory >> 20);
  json::object one{{"name", "ggufmill"},
                   {"image", options.image},
                   {"command", json::array{"ggufmill"}},
                   {"args", std::move(arguments)},
                   {"workingDir", job.working_folder},
                   {"volumeMounts", json::array{json::object{{"name", "shared"}, {"mountPath", options.mount}}}}};
  if (!resources.empty()) one["resources"] = json::object{{"requests", resources}, {"limits", resources}};
  return one;
}

json::object job_object(const ClusterJob& job, const KubernetesOptions& options, const char* what, json::object spec,
                        json::array arguments) {
  json::object pod{
      {"restartPolicy", "Never"},
      {"terminationGracePeriodSeconds", 60},
      {"containers", json::array{container(job, options, std::move(arguments))}},
      {"volumes", json::array{json::object{{"name", "shared"},
                                           {"persistentVolumeClaim", json::object{{"claimName", options.claim}}}}}}};
  // The user whose job it is: others, even root, do not trust its folder.
  if (FileStatus info; kHasUserNumbers && get_status(kCurrentFolder, job.folder, Links::kFollow, info))
    pod["securityContext"] = json::object{{"runAsUser", info.owner}, {"runAsGroup", info.group}};
  spec["template"] = json::object{{"spec", std::move(pod)}};
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", json::object{{"name", object_name(job, what)},
                                    {"labels", json::object{{"app.kubernetes.io/name", "ggufmill"}}}}},
          {"spec", std::move(spec)}};
}

// Returns the rules, which are applied in order: pods evicted with their node are ignored, retryable exit codes do not
// match, and all others are permanent failures.
json::object failure_policy(const char* for_good) {
  const json::object disrupted{
      {"action", "Ignore"},
      {"onPodConditions", json::array{json::object{{"type", "DisruptionTarget"}, {"status", "True"}}}}};
  const json::object permanent{
      {"action", for_good},
      {"onExitCodes",
       json::object{{"containerName", "ggufmill"}, {"operator", "NotIn"}, {"values", json::array{0, 75, 137, 143}}}}};
  return {{"rules", json::array{disrupted, permanent}}};
}

bool is_within(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

// Returns true if a volume mounted at this path would hide files that the image needs.
bool hides_the_image(const std::string& mount) {
  constexpr std::string_view kWhole[] = {"", "/root", "/run", "/tmp", "/var"};
  constexpr std::string_view kTrees[] = {"/bin",   "/boot",   "/dev",  "/etc",  "/lib", "/lib32",
                                         "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr"};
  return std::ranges::count(kWhole, mount) != 0 ||
         std::ranges::any_of(kTrees, [&](std::string_view tree) { return is_within(mount, std::string(tree)); });
}

// Returns the mount path in the form that manifests use: absolute and without a trailing slash. Defaults to the mount
// point of the job's file system.
Result<std::string> mount_of(const ClusterArray& array, const KubernetesOptions& options) {
  std::string mount = options.mount.empty() ? mount_point_of(array.folder) : options.mount;
  while (mount.ends_with('/')) mount.pop_back();
  if (options.mount.empty() && hides_the_image(mount))
    return usage_error(
        fmt::format("the job folder {} is not on a volume mounted at a path of its own", quoted_name(array.folder)),
        "use --mount PATH to set where the pods mount the volume: a folder with the same contents on this machine");
  if (!options.mount.empty() && !options.mount.starts_with('/'))
    return usage_error(fmt::format("--mount {} is not an absolute path", quoted_name(options.mount)));
  if (hides_the_image(mount))
    return usage_error(fmt::format("a volume mounted at {} would hide files of the image", quoted_name(options.mount)),
                       "use a separate path for --mount, such as /shared");
  for (const ClusterJob& job : array.jobs)
    for (const std::string& path : {job.folder, job.working_folder})
      if (!is_within(path, mount))
        return usage_error(
            fmt::format("the pods cannot see {}: the volume is mounted at {}", quoted_name(path), quoted_name(mount)),
            "the job folder, the folder it was submitted from, the models, and the outputs must be on the volume");
  return mount;
}

}  // namespace

std::string mount_point_of(const std::string& path) {
  const auto device_of = [](const std::string& folder) -> std::optional<std::uint64_t> {
    FileStatus status;
    if (!get_status(kCurrentFolder, folder, Links::kFollow, status)) return std::nullopt;
    return status.device;
  };
  std::string point = path;
  const auto device = device_of(point);
  while (device && point != "/") {
    const std::string above = fs::path(point).parent_path();
    if (above == point || device_of(above) != device) return point;
    point = above;
  }
  return "/";
}

Result<std::string> kubernetes_manifest(const ClusterArray& array, const KubernetesOptions& given) {
  KubernetesOptions options = given;
  BOOST_OUTCOME_TRY(options.mount, mount_of(array, given));
  const ClusterJob& job = array.jobs.front();
  const std::string plan = array.plan_file();
  json::object parts{
      {"completionMode", "Indexed"},
      {"completions", array.parts()},
      {"parallelism",
       job.options.max_parallel ? std::min<std::size_t>(job.options.max_parallel, array.parts()) : array.parts()},
      {"backoffLimitPerIndex", kTries},
      {"podFailurePolicy", failure_policy("FailIndex")}};
  json::object seal{{"backoffLimit", kTries}, {"podFailurePolicy", failure_policy("FailJob")}};
  const json::object list{
      {"apiVersion", "v1"},
      {"kind", "List"},
      {"items",
       json::array{job_object(job, options, "parts", std::move(parts),
                              {"part", "--quiet", "--plan", plan, "--part-env", "JOB_COMPLETION_INDEX"}),
                   job_object(job, options, "seal", std::move(seal), {"seal", "--plan", plan, "--wait", "6h"})}}};
  return json::serialize(list);
}

}  // namespace ggufmill
