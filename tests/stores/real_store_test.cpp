// Outputs in buckets of a real object store, which ceph.sh starts: what the program and the server of the other tests
// agree on is not yet what a store does. Run by `./dev test --stores`, which installs the required packages.

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <cstdlib>
#include <ctime>
#include <random>
#include <thread>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/remote/http.h"
#include "tests/remote/workplace.h"

using namespace ggufmill;
namespace {

bool is_wanted() { return std::getenv("GGUFMILL_TEST_STORES") != nullptr; }
constexpr const char* kHowToRun = "`./dev test --stores` starts a store and runs this";

bool has(const std::string& text, std::string_view part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

// The store; one for all tests, because it takes several seconds to start.
class Store {
 public:
  static const Store& one() {
    static const Store store;
    return store;
  }
  ~Store() { run_process({kScript, "stop", folder_.path()}); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const std::string& url() const { return url_; }

  // Sends a request as the store's user, which must be answered with 200, 204, or `status`. Returns the body.
  std::string ask(const std::string& method, const std::string& path, long status = 200) const {
    std::string body;
    remote::RequestBody nothing{0, std::string(remote::kUnsignedBody), [](auto, auto) { return true; }};
    remote::Request request;
    request.url = url_ + "/" + path;
    request.method = method;
    request.key = remote::SigningKey{kS3Key, kS3Secret, "", "us-east-1"};
    if (method == "PUT") request.body = &nothing;
    const remote::Answer answer = remote::send(request, [&](const auto&, std::span<const std::byte> piece) {
      body.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      return true;
    });
    CAPTURE(method, path, answer.problem, body);
    CHECK((answer.status == status || answer.status == 204));
    return body;
  }
  // Runs radosgw-admin.
  void administer(const std::string& words) const {
    std::vector<std::string> all{"/usr/bin/env", "radosgw-admin"}, more;
    boost::split(more, words, boost::is_any_of(" "));
    all.insert(all.end(), more.begin(), more.end());
    const ProcessResult result = run_process(all, {}, {"CEPH_CONF=" + folder_.file("ceph.conf")});
    if (result.exit_code != 0) FAIL(result.out << result.err);
  }

 private:
  static constexpr const char* kScript = GGUFMILL_STORES "/ceph.sh";

  Store() {
    const ProcessResult started = run_process({kScript, "start", folder_.path(), kS3Key, kS3Secret});
    if (started.exit_code != 0) FAIL(started.out << started.err);
    url_ = started.out.substr(0, started.out.find('\n'));
  }

  TempDir folder_;
  std::string url_;
};

// A new bucket, and a folder from which the program writes there. The outputs have 27 and 33 MB: some parts each.
class Bucket {
 public:
  Bucket()
      : place_({"AWS_ENDPOINT_URL_S3=" + Store::one().url(), std::string("AWS_ACCESS_KEY_ID=") + kS3Key,
                std::string("AWS_SECRET_ACCESS_KEY=") + kS3Secret}) {
    static int made = 0;
    name_ = fmt::format("models-{}", ++made);
    Store::one().ask("PUT", name_);
    const ProcessResult synth = run_process({kSynth, "llama", "model.gguf", "--weights", "0.025G"}, place_.folder());
    REQUIRE(synth.exit_code == 0);
    write_text(place_.file("job.yaml"), job("s3://" + name_));
    write_text(place_.file("local.yaml"), job("local"));
    run({"run", "local.yaml"});
  }
  ~Bucket() { remove_objects(); }
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  static std::string job(const std::string& folder) {
    return fmt::format(
        "version: 1\nmanifest: true\ncluster: {{engine: none, parts: 3}}\nsource: {{gguf: model.gguf}}\noutputs:\n"
        "  - {{gguf: '{0}/a folder/x+y.gguf', quantize: Q8_0}}\n"
        "  - {{gguf: {{path: '{0}/q.gguf', shard_tensors: 8}}, quantize: Q4_K}}\n",
        folder);
  }

  // Runs the program, with variables for its environment, which must exit with `code`. Returns its messages.
  std::string run(const std::vector<std::string>& words, int code = 0, std::vector<std::string> variables = {}) const {
    if (!variables.empty()) variables.insert(variables.begin(), "/usr/bin/env");
    const ProcessResult result = place_.run_by(variables, words);
    CAPTURE(result.out, result.err);
    CHECK(result.exit_code == code);
    return result.err;
  }
  // Same, killed after some seconds. Returns true if it was running.
  bool kill(const std::vector<std::string>& words, double seconds) const {
    return place_.run_by({"/usr/bin/timeout", "--foreground", "-s", "KILL", fmt::format("{:.3f}", seconds)}, words)
               .exit_code == 137;
  }

  std::vector<std::string> keys() const { return list("list-type=2", "Key"); }
  std::vector<std::string> uploads() const { return list("uploads=", "UploadId"); }
  void remove_objects() const {
    for (const std::string& key : keys()) Store::one().ask("DELETE", name_ + "/" + encoded(key));
  }
  // Aborts all uploads.
  void forget_uploads() const {
    const auto keys_of = list("uploads=", "Key"), ids = uploads();
    for (std::size_t i = 0; i < ids.size(); ++i)
      Store::one().ask("DELETE", fmt::format("{}/{}?uploadId={}", name_, encoded(keys_of.at(i)), encoded(ids[i])));
  }
  // Checks that every object has the bytes of its local file.
  void check_whole() const {
    for (const std::string& key : keys()) {
      CAPTURE(key);
      if (key.ends_with(".manifest.json")) continue;  // it has the time of its run
      const bool same = Store::one().ask("GET", name_ + "/" + encoded(key)) == read_text(place_.file("local/" + key));
      CHECK(same);
    }
  }
  // Checks that all objects exist, and nothing else, here or in the store.
  void check_done() const {
    check_whole();
    CHECK(keys().size() == 7);
    check_clean();
  }
  // Checks that nothing is left of an upload, in the store and here, and that no file reveals a secret.
  void check_clean() const {
    CHECK(uploads().empty());
    const std::string records = place_.home(".local/state/ggufmill/uploads");
    if (fs::exists(records)) CHECK(names_in(records).empty());
    CHECK_FALSE(place_.tells());
  }
  const std::string& name() const { return name_; }
  const Workplace& place() const { return place_; }

 private:
  static std::string encoded(const std::string& text) {
    std::string out;
    for (const char c : text)
      out += std::isalnum(static_cast<unsigned char>(c)) || std::string_view("-._~/").find(c) != std::string_view::npos
                 ? std::string(1, c)
                 : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    return out;
  }
  // Returns the texts of the elements of a listing of the bucket.
  std::vector<std::string> list(const std::string& query, const std::string& element) const {
    const std::string xml = Store::one().ask("GET", name_ + "?" + query), open = "<" + element + ">";
    std::vector<std::string> found;
    for (std::size_t at = 0; (at = xml.find(open, at)) != std::string::npos;) {
      at += open.size();
      found.push_back(xml.substr(at, xml.find('<', at) - at));
    }
    return found;
  }

  Workplace place_;
  std::string name_;
};

// Number of kills in a test: GGUFMILL_KILLS, or `usual`.
int wanted_kills(int usual) {
  const char* const wanted = std::getenv("GGUFMILL_KILLS");
  return wanted ? std::atoi(wanted) : usual;
}

// Kills a command up to `most` times at random instants. Returns how often it was running.
int kill_often(const Bucket& bucket, const std::vector<std::string>& words, int most) {
  static std::mt19937 random(20261124);
  for (int i = 0; i < most; ++i) {
    if (!bucket.kill(words, std::uniform_real_distribution<>(0.02, 0.6)(random))) return i;
    bucket.check_whole();
  }
  return most;
}

}  // namespace

TEST_CASE("a real store gets the bytes of local files") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Bucket bucket;
  bucket.run({"run", "job.yaml"});
  bucket.check_done();
  CHECK(has(bucket.run({"run", "job.yaml"}, 2), "the output already exists"));
  CHECK(has(bucket.run({"run", "job.yaml", "--skip-unchanged"}), "unchanged"));
  bucket.run({"verify", fmt::format("s3://{}/a folder/x+y.gguf", bucket.name())});
  bucket.run({"verify", fmt::format("s3://{}/q-00001-of-00002.gguf", bucket.name())});
  bucket.run({"run", "job.yaml", "--overwrite"});
  bucket.check_done();
}

TEST_CASE("a run to a real store is killed at any time and resumed") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Bucket bucket;
  for (int kills = 0; kills < wanted_kills(20);) {
    kills += kill_often(bucket, {"run", "job.yaml"}, 20);
    if (bucket.keys().size() < 7) bucket.run({"run", "job.yaml"});
    bucket.check_done();
    bucket.remove_objects();
  }
}

TEST_CASE("the parts of a cluster job, killed at any time, upload to a real store") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Bucket bucket;
  bucket.run({"submit", "job.yaml"});
  for (const char* part : {"1", "2", "0"}) {
    kill_often(bucket, {"part", "--plan", "job.job/plan.json", "--part", part}, 4);
    bucket.run({"part", "--plan", "job.job/plan.json", "--part", part});
    CHECK(bucket.keys().empty());
  }
  kill_often(bucket, {"seal", "--plan", "job.job/plan.json"}, 4);
  bucket.run({"seal", "--plan", "job.job/plan.json"});
  bucket.check_done();
}

TEST_CASE("an upload that a real store has forgotten is made again") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Bucket bucket;
  for (double seconds = 0.1; bucket.uploads().empty() && bucket.kill({"run", "job.yaml"}, seconds); seconds += 0.05) {
  }
  CHECK(!bucket.uploads().empty());
  bucket.forget_uploads();
  bucket.run({"run", "job.yaml"});
  bucket.check_done();
}

TEST_CASE("--discard aborts the uploads in a real store") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Bucket bucket;
  for (double seconds = 0.1; bucket.uploads().empty() && bucket.kill({"run", "job.yaml"}, seconds); seconds += 0.05) {
  }
  CHECK(!bucket.uploads().empty());
  bucket.run({"run", "job.yaml", "--discard"});
  CHECK(bucket.keys().empty());
  bucket.check_clean();
}

TEST_CASE("of two runs to the same objects of a real store, one is refused") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Bucket bucket;
  ProcessResult results[2];
  {
    std::jthread other([&] { results[1] = bucket.place().run({"run", "job.yaml"}); });
    results[0] = bucket.place().run({"run", "job.yaml"});
  }
  CAPTURE(results[0].err, results[1].err);
  CHECK(std::min(results[0].exit_code, results[1].exit_code) == 0);
  const int refused = std::max(results[0].exit_code, results[1].exit_code);
  CHECK((refused == 75 || refused == 2));  // 2: the other run has already finished
  bucket.check_done();
}

TEST_CASE("a refusal of a real store is reported, and nothing is visible") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Bucket bucket;
  static const bool is_made = [] {
    Store::one().administer("user create --uid other --display-name other --access-key OTHER --secret-key other");
    return true;
  }();
  REQUIRE(is_made);
  const auto [variables, message] = GENERATE(table<std::vector<std::string>, const char*>(
      {{{"AWS_SECRET_ACCESS_KEY=wrong"}, "the server refuses the credentials"},
       {{"AWS_ACCESS_KEY_ID=UNKNOWN"}, "the server refuses the credentials"},
       {{"AWS_ACCESS_KEY_ID=OTHER", "AWS_SECRET_ACCESS_KEY=other"}, "the server refuses access"}}));
  CHECK(has(bucket.run({"run", "job.yaml"}, 6, variables), message));
  CHECK(bucket.keys().empty());
  bucket.check_clean();
}

TEST_CASE("a bucket that a real store does not have is refused") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Bucket bucket;
  write_text(bucket.place().file("job.yaml"), Bucket::job("s3://no-such-bucket"));
  CHECK(has(bucket.run({"run", "job.yaml"}, 6), "the bucket 'no-such-bucket' does not exist"));
  bucket.check_clean();
}

TEST_CASE("a run that fills a real store resumes when there is room") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Bucket bucket;
  Store::one().administer(
      fmt::format("quota set --quota-scope=bucket --uid=owner --bucket={} --max-size=1048576", bucket.name()));
  Store::one().administer(fmt::format("quota enable --quota-scope=bucket --uid=owner --bucket={}", bucket.name()));
  const std::string message = bucket.run({"run", "job.yaml"}, 6);
  CHECK(has(message, "QuotaExceeded"));
  CHECK(bucket.keys().empty());
  Store::one().administer(fmt::format("quota disable --quota-scope=bucket --uid=owner --bucket={}", bucket.name()));
  bucket.run({"run", "job.yaml"});
  bucket.check_done();
}
