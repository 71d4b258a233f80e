// Checks the requests sent to cluster engines, without the engines: sbatch is a script that records its arguments, and
// Kubernetes manifests are checked against the fields of the published API (batch/v1 and core/v1 of Kubernetes 1.33).

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <map>
#include <set>

#include "pipeline/api/command.h"
#include "pipeline/cluster/kubernetes.h"
#include "pipeline/cluster/slurm.h"
#include "tests/cluster/job_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"

using namespace ggufmill;
using namespace ggufmill::testing;
namespace json = boost::json;

namespace {

ClusterJob job_in(const std::string& folder) {
  ClusterJob job;
  job.folder = folder;
  job.working_folder = "/shared/work here";
  job.name = "Llama 3_8B";
  job.identity = "0123456789abcdef0123456789abcdef";
  job.id = "abc123";
  job.cuts = {0, 2, 4, 6, 8};
  job.costs = {1, 1, 1, 1};
  return job;
}

// Programs with the names of Slurm's, in front of PATH.
class FakeSlurm {
 public:
  // `sbatch` is the action of that script after it has recorded its arguments.
  explicit FakeSlurm(const std::string& sbatch) : path_(std::getenv("PATH")) {
    program("sbatch", sbatch);
    program("scancel", "");
    ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  ~FakeSlurm() { ::setenv("PATH", path_.c_str(), 1); }
  FakeSlurm(const FakeSlurm&) = delete;
  FakeSlurm& operator=(const FakeSlurm&) = delete;
  std::string noted() const { return read_text(folder_.file("noted")); }

 private:
  void program(const std::string& name, const std::string& body) const {
    write_text(folder_.file(name),
               fmt::format("#!/bin/sh\necho {} \"$@\" >> {}\n{}\n", name, folder_.file("noted"), body));
    ::chmod(folder_.file(name).c_str(), 0755);
  }

  TempDir folder_;
  const std::string path_;
};

// The fields that an object of the API may have, by its kind. Fields that are objects or lists of objects name their
// kind.
using Fields = std::map<std::string, std::string>;
const std::map<std::string, Fields>& api() {
  static const std::map<std::string, Fields> kinds{
      {"List", {{"apiVersion", ""}, {"kind", ""}, {"items", "Job"}}},
      {"Job", {{"apiVersion", ""}, {"kind", ""}, {"metadata", "ObjectMeta"}, {"spec", "JobSpec"}}},
      {"ObjectMeta", {{"name", ""}, {"namespace", ""}, {"labels", "*"}, {"annotations", "*"}}},
      {"JobSpec",
       {{"activeDeadlineSeconds", ""},
        {"backoffLimit", ""},
        {"backoffLimitPerIndex", ""},
        {"completionMode", ""},
        {"completions", ""},
        {"manualSelector", ""},
        {"maxFailedIndexes", ""},
        {"parallelism", ""},
        {"podFailurePolicy", "PodFailurePolicy"},
        {"podReplacementPolicy", ""},
        {"suspend", ""},
        {"template", "PodTemplateSpec"},
        {"ttlSecondsAfterFinished", ""}}},
      {"PodFailurePolicy", {{"rules", "PodFailurePolicyRule"}}},
      {"PodFailurePolicyRule",
       {{"action", ""}, {"onExitCodes", "OnExitCodes"}, {"onPodConditions", "OnPodConditions"}}},
      {"OnExitCodes", {{"containerName", ""}, {"operator", ""}, {"values", ""}}},
      {"OnPodConditions", {{"type", ""}, {"status", ""}}},
      {"PodTemplateSpec", {{"metadata", "ObjectMeta"}, {"spec", "PodSpec"}}},
      {"PodSpec",
       {{"restartPolicy", ""},
        {"terminationGracePeriodSeconds", ""},
        {"containers", "Container"},
        {"volumes", "Volume"},
        {"nodeSelector", "*"}}},
      {"Container",
       {{"name", ""},
        {"image", ""},
        {"command", ""},
        {"args", ""},
        {"workingDir", ""},
        {"env", "EnvVar"},
        {"resources", "Resources"},
        {"volumeMounts", "VolumeMount"}}},
      {"EnvVar", {{"name", ""}, {"value", ""}}},
      {"Resources", {{"limits", "*"}, {"requests", "*"}}},
      {"VolumeMount", {{"name", ""}, {"mountPath", ""}, {"subPath", ""}, {"readOnly", ""}}},
      {"Volume", {{"name", ""}, {"persistentVolumeClaim", "Claim"}}},
      {"Claim", {{"claimName", ""}, {"readOnly", ""}}}};
  return kinds;
}

void check_object(const json::value& value, const std::string& kind) {
  if (value.is_array()) {
    for (const json::value& item : value.as_array()) check_object(item, kind);
    return;
  }
  for (const auto& member : value.as_object()) {
    const std::string name(member.key());
    CAPTURE(kind, name);
    const auto found = api().at(kind).find(name);
    REQUIRE(found != api().at(kind).end());
    if (found->second.empty())
      CHECK_FALSE(member.value().is_object());
    else if (found->second != "*")
      check_object(member.value(), found->second);
  }
}

}  // namespace

TEST_CASE("parts are an array of Slurm, and the seal depends on it") {
  const TempDir folder;
  ClusterArray array = array_of(job_in(folder.path()));
  ClusterJob& job = array.jobs.front();
  job.options.partition = "long; rm";
  job.options.cpus = 8;
  job.options.memory = std::uint64_t{4} << 30;
  job.options.time = "2:00:00";
  job.options.max_parallel = 2;
  job.options.options = {"--nice=100"};
  const FakeSlurm slurm("echo $((41 + $(wc -l < \"$(dirname \"$0\")/noted\")))';cluster'");
  const auto submitted = submit_to_slurm(array, {0, 1, 3}, "/opt/gguf mill/bin/ggufmill");
  REQUIRE(submitted);
  CHECK(submitted.value().parts_id == "42");
  CHECK(submitted.value().seal_id == "43");
  const std::string noted = slurm.noted();
  for (const char* word :
       {"--array=0-1,3%2", "--partition=long; rm", "--cpus-per-task=8", "--mem=4096M", "--time=2:00:00", "--nice=100",
        "--signal=B:USR1@60", "--requeue", "--chdir=/shared/work here", "--dependency=afterok:42",
        "--kill-on-invalid-dep=yes", "--export=HOME,PATH,LD_LIBRARY_PATH"}) {
    CAPTURE(word);
    CHECK(noted.find(word) != std::string::npos);
  }
  CHECK(read_text(job.file("part.sh")).find("'/opt/gguf mill/bin/ggufmill' part --quiet") != std::string::npos);
  const auto again = submit_to_slurm(array, {}, "ggufmill");  // only the seal
  REQUIRE(again);
  CHECK(again.value().parts_id.empty());
  const auto submissions = read_submissions(array);
  REQUIRE(submissions);
  REQUIRE(submissions.value().size() == 2);
  CHECK(submissions.value()[0].indices == "0-1,3");
  CHECK(submissions.value()[1].seal_id == "44");
}

TEST_CASE("the parts of a matrix are one array, and the seal waits for their end") {
  const TempDir folder;
  ClusterArray array = array_of(job_in(folder.file("0-a")));
  array.folder = folder.path();
  array.is_matrix = true;
  array.jobs.push_back(job_in(folder.file("1-b")));
  array.jobs.back().first_part = array.jobs.front().parts();
  const FakeSlurm slurm("echo $((41 + $(wc -l < \"$(dirname \"$0\")/noted\")))");
  REQUIRE(submit_to_slurm(array, {0, 1, 2, 3, 4, 5, 6, 7}, "ggufmill"));
  const std::string noted = slurm.noted();
  CHECK(noted.find("--array=0-7 ") != std::string::npos);
  CHECK(noted.find("--dependency=afterany:42 ") != std::string::npos);
  CHECK(noted.find("--kill-on-invalid-dep") == std::string::npos);
  CHECK(std::ranges::count(noted, '\n') == 2);  // nothing else is submitted
  for (const char* script : {"part.sh", "seal.sh"})
    CHECK(read_text(array.file(script)).find("--plan " + array.file("matrix.json") + " ") != std::string::npos);
  KubernetesOptions options;
  options.claim = "models";
  options.mount = "/shared";
  for (ClusterJob& job : array.jobs) job.folder = "/shared/jobs/" + job.name;
  const json::value list = json::parse(kubernetes_manifest(array, options).value());
  check_object(list, "List");
  CHECK(list.at("items").at(0).at("spec").at("completions") == 8);
}

TEST_CASE("where Slurm takes the parts and not the seal, the parts are taken back") {
  const TempDir folder;
  const ClusterArray array = array_of(job_in(folder.path()));
  const FakeSlurm slurm("case \"$*\" in *afterok*) echo 'no such partition' >&2; exit 1;; *) echo 7;; esac");
  const auto submitted = submit_to_slurm(array, {0}, "ggufmill");
  REQUIRE(!submitted);
  CHECK(submitted.error().code == ExitCode::kIo);
  CHECK(submitted.error().detail == "no such partition\n");
  CHECK(slurm.noted().ends_with("scancel 7\n"));
}

TEST_CASE("manifests of Kubernetes have fields that it knows") {
  ClusterArray array = array_of(job_in("/shared/jobs/llama.job"));
  ClusterJob& job = array.jobs.front();
  job.options.cpus = 8;
  job.options.memory = std::uint64_t{4} << 30;
  KubernetesOptions options;
  options.claim = "models";
  options.mount = "/shared/";
  const std::string manifest = kubernetes_manifest(array, options).value();
  const json::value list = json::parse(manifest);
  check_object(list, "List");
  CHECK(manifest.find("SLURM") == std::string::npos);
  const json::array& items = list.at("items").as_array();
  REQUIRE(items.size() == 2);
  const json::value& parts = items[0].at("spec");
  CHECK(parts.at("completionMode") == "Indexed");
  CHECK(parts.at("completions") == 4);
  CHECK(parts.at("parallelism") == 4);
  const json::value& pod = parts.at("template").at("spec");
  CHECK(pod.at("restartPolicy") == "Never");  // required by podFailurePolicy
  CHECK(pod.at("containers").at(0).at("volumeMounts").at(0).at("mountPath") == "/shared");
  CHECK(pod.at("containers").at(0).at("command") == json::array{"ggufmill"});  // found through the PATH of the image
  CHECK(pod.at("containers").at(0).at("resources").at("limits") == json::object{{"cpu", "8"}, {"memory", "4096Mi"}});
  CHECK(pod.at("containers").at(0).at("args").at(5) == "JOB_COMPLETION_INDEX");
  const auto rules = [](const json::value& item) {
    return item.at("spec").at("podFailurePolicy").at("rules").as_array();
  };
  CHECK(rules(items[0])[1].at("action") == "FailIndex");  // only valid with backoffLimitPerIndex
  CHECK(rules(items[1])[1].at("action") == "FailJob");
  for (const json::value& item : items) {
    const std::string name(item.at("metadata").at("name").as_string());
    CAPTURE(name);
    CHECK(name.size() <= 63);
    CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos);
  }
}

TEST_CASE("a volume is mounted at a path of its own, with all folders of the job below it") {
  const ClusterArray array = array_of(job_in("/shared/jobs/llama.job"));
  KubernetesOptions options;
  options.claim = "models";
  const auto refusal = [&](const char* mount) {
    options.mount = mount;
    const auto made = kubernetes_manifest(array, options);
    REQUIRE(!made);
    CHECK(made.error().code == ExitCode::kUsage);
    return made.error().what;
  };
  for (const char* mount : {"/", "/usr", "/usr/local/", "/etc", "/tmp", "/proc/x"}) {
    CAPTURE(mount);
    CHECK(refusal(mount) == fmt::format("a volume mounted at '{}' would hide files of the image", mount));
  }
  CHECK(refusal("shared") == "--mount 'shared' is not an absolute path");
  CHECK(refusal("/shared/jobs") == "the pods cannot see '/shared/work here': the volume is mounted at '/shared/jobs'");
  CHECK(refusal("") == "the job folder '/shared/jobs/llama.job' is not on a volume mounted at a path of its own");
  CHECK(mount_point_of("/proc/self/task") == "/proc");
  CHECK(mount_point_of("/no/such/folder") == "/");
}

TEST_CASE("a program's output, its errors, and words for a shell") {
  const auto echoed = run_command({"sh", "-c", "echo out; echo err >&2; exit 3"});
  REQUIRE(echoed);
  CHECK(echoed.value().out == "out\n");
  CHECK(echoed.value().err == "err\n");
  CHECK(echoed.value().exit_code == 3);
  CHECK(run_command({"sh", "-c", "kill -9 $$"}).value().exit_code == 137);
  CHECK(run_command({"no-such-program-of-ggufmill"}).error().code == ExitCode::kIo);
  const std::string large =
      run_command({"sh", "-c", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"}).value().err;
  CHECK(large.size() == 300000);
  CHECK(shell_words({"a b", "c", "it's", ""}) == "'a b' c 'it'\\''s' ''");
}
