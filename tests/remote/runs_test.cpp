// Complete runs of the program on remote sources: the output bytes must equal those from local files, and no secret may
// appear in any output.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "pipeline/io/platform/filesystem.h"
#include "tests/remote/test_server.h"
#include "tests/remote/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/safetensors_builder.h"

using namespace ggufmill;
using namespace std::chrono_literals;
namespace {

bool has(const std::string& text, std::string_view part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

void make_model(const std::string& path) {
  run_process({kSynth, "model", "tests/golden/models/tiny-llama.json", path});
  REQUIRE(fs::exists(path));
}

std::string gguf_job(const std::string& source, const std::string& out = "out.gguf") {
  return fmt::format(
      "version: 1\nsource: {{gguf: '{}'}}\noutputs: [{{gguf: {}, quantize: Q4_K_M}}]\nmanifest: true\n"
      "report: {{json: report.json, html: report.html}}\n",
      source, out);
}

constexpr const char* kConfig =
    R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 4, "num_attention_heads": 1, "num_hidden_layers": 1,
        "vocab_size": 5, "intermediate_size": 8, "rms_norm_eps": 1e-5, "max_position_embeddings": 16})";
constexpr const char* kTokenizer =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "d": 4}, "merges": ["a b"]},
        "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}})";

// Creates a checkpoint in two files; different seeds give different weights.
void make_checkpoint(const fs::path& folder, unsigned seed) {
  fs::create_directories(folder / "additional_chat_templates");
  const auto put = [&](const std::string& name, const std::string& text) { write_text(folder / name, text); };
  std::mt19937 random(seed);
  const auto tensor = [&](const std::string& name, const std::vector<std::uint64_t>& dims) {
    std::size_t elements = 1;
    for (const std::uint64_t dim : dims) elements *= dim;
    std::string data;
    for (std::size_t i = 0; i < elements; ++i) {
      const float value = static_cast<float>(random() % 1000) / 100;
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return SafetensorsTensor{name, "F32", dims, data};
  };
  put("config.json", kConfig);
  put("tokenizer.json", kTokenizer);
  put("tokenizer_config.json", R"({"model_max_length": 16})");
  put("chat_template.jinja", "{{ messages }}");
  put("additional_chat_templates/tool.jinja", "{{ tools }}");
  put("notes.txt", "notes");
  put("README.md", "---\nlicense: mit\n---\nA model.\n");
  const std::string one = "model-00001-of-00002.safetensors", two = "model-00002-of-00002.safetensors";
  put(one, safetensors_bytes({tensor("model.embed_tokens.weight", {5, 4}), tensor("model.norm.weight", {4})}));
  put(two, safetensors_bytes({tensor("model.layers.0.input_layernorm.weight", {4}),
                              tensor("model.layers.0.post_attention_layernorm.weight", {4}),
                              tensor("model.layers.0.self_attn.q_proj.weight", {4, 4}),
                              tensor("model.layers.0.self_attn.k_proj.weight", {4, 4}),
                              tensor("model.layers.0.self_attn.v_proj.weight", {4, 4}),
                              tensor("model.layers.0.self_attn.o_proj.weight", {4, 4}),
                              tensor("model.layers.0.mlp.gate_proj.weight", {8, 4}),
                              tensor("model.layers.0.mlp.up_proj.weight", {8, 4}),
                              tensor("model.layers.0.mlp.down_proj.weight", {4, 8})}));
  put("model.safetensors.index.json", safetensors_index({{"model.embed_tokens.weight", one},
                                                         {"model.norm.weight", one},
                                                         {"model.layers.0.input_layernorm.weight", two},
                                                         {"model.layers.0.post_attention_layernorm.weight", two},
                                                         {"model.layers.0.self_attn.q_proj.weight", two},
                                                         {"model.layers.0.self_attn.k_proj.weight", two},
                                                         {"model.layers.0.self_attn.v_proj.weight", two},
                                                         {"model.layers.0.self_attn.o_proj.weight", two},
                                                         {"model.layers.0.mlp.gate_proj.weight", two},
                                                         {"model.layers.0.mlp.up_proj.weight", two},
                                                         {"model.layers.0.mlp.down_proj.weight", two}}));
}

std::string checkpoint_job(const std::string& source, const std::string& out) {
  return fmt::format(
      "version: 1\nsource: {{huggingface: {{path: '{}', pre: default}}}}\noutputs: [{{gguf: {}}}]\nmanifest: true\n"
      "report: {{json: report.json}}\n",
      source, out);
}

}  // namespace

TEST_CASE("a GGUF file on a server gives the bytes that it gives here") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const TestServer server;
  make_model(server.file("model.gguf"));
  const Workplace place;
  place.run_job(gguf_job(server.file("model.gguf")));
  const std::string wanted = read_text(place.file("out.gguf"));
  for (const std::string how : {"plain", "time", "redirect", "busy503", "short"}) {
    CAPTURE(how);
    place.run_job(gguf_job(server.url(how + "/model.gguf")), 0, {"--overwrite"});
    CHECK(read_text(place.file("out.gguf")) == wanted);
    CHECK_FALSE(place.tells());
    const ProcessResult shown = place.run({"inspect", server.url(how + "/model.gguf")});
    CHECK(shown.exit_code == 0);
  }
  const ProcessResult quantized = place.run({"quantize", server.url("plain/model.gguf"), "verb.gguf", "Q4_K_M"});
  CHECK(quantized.exit_code == 0);
  CHECK(read_text(place.file("verb.gguf")) == wanted);
}

TEST_CASE("the shards of a GGUF file are found by their names") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const TestServer server;
  make_model(server.file("model.gguf"));
  const Workplace place;
  place.run_job(fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs: [{{gguf: {{path: {}, shard_size: 400K}}}}]\n",
                            server.file("model.gguf"), server.file("split.gguf")));
  std::string first;
  for (const std::string& name : names_in(server.root()))
    if (name.starts_with("split-00001-of-")) first = name;
  REQUIRE_FALSE(first.empty());
  place.run_job(gguf_job(server.file(first)));
  const std::string wanted = read_text(place.file("out.gguf"));
  place.run_job(gguf_job(server.url("plain/" + first)), 0, {"--overwrite"});
  CHECK(read_text(place.file("out.gguf")) == wanted);
}

TEST_CASE("a run resumes with a source on a server, unless that has changed") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const TestServer server;
  run_process({kSynth, "llama", server.file("model.gguf"), "--weights", "0.004G"});
  const std::uint64_t size = fs::file_size(server.file("model.gguf"));
  const Workplace place;
  const std::string job = gguf_job(server.url("dies/model.gguf"));
  // Returns the number of bytes of the file requested from the server after the first `before` requests.
  const auto asked_since = [&](std::size_t before) {
    std::uint64_t bytes = 0;
    const std::vector<ServedRequest> requests = server.requests();
    for (std::size_t i = before; i < requests.size(); ++i) {
      unsigned long long first = 0, last = 0;
      if (std::sscanf(requests[i].range.c_str(), "bytes=%llu-%llu", &first, &last) == 2)
        bytes += std::min<std::uint64_t>(last, size - 1) - first + 1;
    }
    return bytes;
  };
  for (const bool changes : {false, true}) {
    CAPTURE(changes);
    const std::string interrupted = place.run_job(job, 75);
    CHECK(has(interrupted, "the server answered 429"));
    CHECK(has(interrupted, "run the same command again to resume"));
    CHECK_FALSE(fs::exists(place.file("out.gguf")));
    CHECK_FALSE(place.tells());  // in the journal
    write_text(server.file("healed"), "");
    if (changes) fs::last_write_time(server.file("model.gguf"), fs::last_write_time(server.file("model.gguf")) + 1h);
    const std::size_t before = server.requests().size();
    place.run_job(job);
    CHECK((asked_since(before) > size) == changes);
    const std::string resumed = read_text(place.file("out.gguf"));
    place.run_job(gguf_job(server.file("model.gguf")), 0, {"--overwrite"});
    CHECK(read_text(place.file("out.gguf")) == resumed);
    fs::remove(server.file("healed"));
    for (const std::string& name : names_in(place.folder()))
      if (name != "job.yaml") fs::remove(place.file(name));
  }
}

TEST_CASE("a change under the run ends it, and nothing is written") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const TestServer server;
  make_model(server.file("model.gguf"));
  const Workplace place;
  const std::string error = place.run_job(gguf_job(server.url("changed/4/a/model.gguf")), 4);
  CHECK(has(error, "the file changed since its header was read"));
  CHECK_FALSE(fs::exists(place.file("out.gguf")));
}

TEST_CASE("a checkpoint on a hub gives the bytes that its folder gives") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const TestServer server;
  const std::string commit(40, 'c'), later(40, 'd');
  const std::string folder = server.file("hub/private/Tiny-5x4");
  make_checkpoint(fs::path(folder) / commit, 1);
  make_checkpoint(fs::path(folder) / later, 2);
  const auto set_main = [&](const std::string& to) {
    write_text(folder + "/refs.json", fmt::format(R"({{"main": "{}", "v1": "{}"}})", to, commit));
  };
  set_main(commit);
  const Workplace place({"HF_ENDPOINT=" + server.host(), std::string("HF_TOKEN=") + kToken});
  // A local copy in a folder with the name of the repository.
  fs::create_directories(place.file("here"));
  fs::copy(folder + "/" + commit, place.file("here/Tiny-5x4"), fs::copy_options::recursive);
  place.run_job(checkpoint_job("here/Tiny-5x4", "here.gguf"));
  const std::string wanted = read_text(place.file("here.gguf"));

  for (const std::string address :
       {"hf://private/Tiny-5x4", "hf://private/Tiny-5x4@main", "hf://private/Tiny-5x4@v1"}) {
    CAPTURE(address);
    place.run_job(checkpoint_job(address, "there.gguf"), 0, {"--overwrite"});
    CHECK(read_text(place.file("there.gguf")) == wanted);
    CHECK_FALSE(place.tells());
    CHECK(has(read_text(place.file("report.json")) + read_text(place.file("there.gguf.manifest.json")),
              "hf://private/Tiny-5x4@" + commit + "/model-00001-of-00002.safetensors"));
  }
  set_main(later);
  place.run_job(checkpoint_job("hf://private/Tiny-5x4", "there.gguf"), 0, {"--overwrite"});
  CHECK(read_text(place.file("there.gguf")) != wanted);
  place.run_job(checkpoint_job("hf://private/Tiny-5x4@" + commit, "there.gguf"), 0, {"--overwrite"});
  CHECK(read_text(place.file("there.gguf")) == wanted);

  const ProcessResult converted =
      place.run({"convert", "hf://private/Tiny-5x4@v1", "--outfile", "verb.gguf", "--outtype", "f16"});
  CHECK(converted.exit_code == 4);  // the pre-tokenizer of the test is unknown
  CHECK(has(converted.err, "tokenizer"));

  // The token is sent to the hub, but not to servers that the hub redirects to.
  std::size_t to_hub = 0, to_others = 0;
  for (const ServedRequest& request : server.requests()) {
    const bool is_hub = request.port == server.port();
    (is_hub ? to_hub : to_others) += 1;
    CHECK(request.authorization == (is_hub ? std::string("Bearer ") + kToken : ""));
  }
  CHECK(to_hub > 10);
  CHECK(to_others > 4);
}

TEST_CASE("the type in an address selects a GGUF file of a repository") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const TestServer server;
  const std::string commit(40, 'c'), folder = server.file("hub/open/Tiny-GGUF/");
  fs::create_directories(folder + commit + "/BF16");
  write_text(folder + "refs.json", fmt::format(R"({{"main": "{}"}})", commit));
  make_model(folder + commit + "/BF16/Tiny-BF16.gguf");
  fs::copy(folder + commit + "/BF16/Tiny-BF16.gguf", folder + commit + "/mmproj-Tiny-F16.gguf");
  const Workplace place({"HF_ENDPOINT=" + server.host()});
  place.run_job(gguf_job(folder + commit + "/BF16/Tiny-BF16.gguf"));
  const std::string wanted = read_text(place.file("out.gguf"));
  for (const std::string address :
       {"hf://open/Tiny-GGUF:bf16", "hf://open/Tiny-GGUF@main:BF16", "hf://open/Tiny-GGUF"}) {
    CAPTURE(address);
    place.run_job(gguf_job(address), 0, {"--overwrite"});
    CHECK(read_text(place.file("out.gguf")) == wanted);
  }
  CHECK(place.run({"inspect", "hf://open/Tiny-GGUF:BF16"}).exit_code == 0);
  const auto verified = place.run({"verify", "hf://open/Tiny-GGUF:BF16"});
  CAPTURE(verified.out, verified.err);
  CHECK(verified.exit_code == 0);
  CHECK(place.run({"quantize", "hf://open/Tiny-GGUF:BF16", "verb.gguf", "Q4_K_M"}).exit_code == 0);
  CHECK(has(place.run_job(gguf_job("hf://open/Tiny-GGUF:Q9"), 4), "the model has no GGUF file of type 'Q9'"));
  CHECK(has(place.run_job(gguf_job("hf://open/Tiny-GGUF:Q9/a.gguf"), 2), "does not end with a type of GGUF"));
  CHECK(
      has(place.run_job(checkpoint_job("hf://open/Tiny-GGUF:BF16", "a.gguf"), 4), "is a GGUF file, not a checkpoint"));
  CHECK(
      has(place.run_job(checkpoint_job("hf://open/Tiny-GGUF", "a.gguf"), 4), "contains GGUF files and no checkpoint"));

  fs::copy(folder + commit + "/BF16/Tiny-BF16.gguf", folder + commit + "/Tiny-Q8_0.gguf");
  const std::string several = place.run_job(gguf_job("hf://open/Tiny-GGUF"), 4);
  CHECK(has(several, "the folder contains 2 models"));
  CHECK(has(several, "Tiny-Q8_0.gguf"));
  CHECK(has(several, "hf://ORG/NAME:Q4_K_M"));
}

TEST_CASE("a model of a hub that is private asks for a token") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const TestServer server;
  const std::string commit(40, 'c');
  make_checkpoint(server.file("hub/private/Tiny/" + commit), 1);
  make_checkpoint(server.file("hub/open/Tiny/" + commit), 1);
  const std::string job = checkpoint_job("hf://private/Tiny@" + commit, "out.gguf");
  const Workplace nobody({"HF_ENDPOINT=" + server.host() + "/"});
  const std::string refused = nobody.run_job(job, 6);
  CHECK(has(refused, "the server refuses access (401)"));
  CHECK(has(refused, "set HF_TOKEN"));
  nobody.run_job(checkpoint_job("hf://open/Tiny@" + commit, "out.gguf"));
  CHECK(
      has(nobody.run_job(checkpoint_job("hf://open/Other@" + commit, "out.gguf"), 4), "the file does not exist (404)"));
  CHECK(has(nobody.run_job(gguf_job("hf://open/Tiny@" + commit + "/none.gguf"), 4), "the file does not exist (404)"));

  fs::create_directories(nobody.home("hf"));  // as `hf auth login` stores it
  write_text(nobody.home("hf/token"), std::string(kToken) + "\n");
  nobody.run_job(job, 0, {"--overwrite"});
  CHECK_FALSE(nobody.tells());

  const Workplace wrong({"HF_ENDPOINT=" + server.host(), "HF_TOKEN=hf_other"});
  const std::string still = wrong.run_job(job, 6);
  CHECK(has(still, "the token may not grant access"));
  CHECK_FALSE(has(still, "hf_other"));
  const Workplace broken({"HF_ENDPOINT=" + server.host(), std::string("HF_TOKEN=") + kToken + " x"});
  CHECK(has(broken.run_job(job, 2), "HF_TOKEN does not contain a valid token or key"));
}

TEST_CASE("an object of a bucket is read with signed requests") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const TestServer server;
  fs::create_directories(server.file("s3/weights/some folder"));
  fs::create_directories(server.file("s3/public-weights"));
  make_model(server.file("s3/weights/some folder/model+1.gguf"));
  fs::copy(server.file("s3/weights/some folder/model+1.gguf"), server.file("s3/public-weights/model.gguf"));
  const std::string endpoint = "AWS_ENDPOINT_URL_S3=" + server.host();
  const std::string job = gguf_job("s3://weights/some folder/model+1.gguf");
  const Workplace place({endpoint, std::string("AWS_ACCESS_KEY_ID=") + kS3Key,
                         std::string("AWS_SECRET_ACCESS_KEY=") + kS3Secret, "AWS_REGION=eu-central-1"});
  place.run_job(gguf_job(server.file("s3/public-weights/model.gguf")));
  const std::string wanted = read_text(place.file("out.gguf"));
  place.run_job(job, 0, {"--overwrite"});
  CHECK(read_text(place.file("out.gguf")) == wanted);
  CHECK_FALSE(place.tells());

  const Workplace from_file({endpoint});
  write_text(from_file.home("credentials"),
             fmt::format("[default]\naws_access_key_id = ASIATEMPORARY\naws_secret_access_key = temporary/secret\n"
                         "aws_session_token = {}\n",
                         kSessionToken));
  from_file.run_job(job);
  CHECK(read_text(from_file.file("out.gguf")) == wanted);
  CHECK_FALSE(from_file.tells());

  const Workplace wrong({endpoint, std::string("AWS_ACCESS_KEY_ID=") + kS3Key, "AWS_SECRET_ACCESS_KEY=another"});
  CHECK(has(wrong.run_job(job, 6), "the server refuses access (403)"));
  const Workplace half({endpoint, std::string("AWS_ACCESS_KEY_ID=") + kS3Key});
  CHECK(has(half.run_job(job, 2), "has only half of a key"));
  const Workplace nobody({endpoint});
  nobody.run_job(gguf_job("s3://public-weights/model.gguf"));
  CHECK(read_text(nobody.file("out.gguf")) == wanted);
}

TEST_CASE("servers with certificates are believed where the certificate is") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const TempDir certificates;
  const std::string certificate = certificates.file("ca.pem"), key = certificates.file("key.pem");
  if (run_process({"/usr/bin/env", "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
                   certificate, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"})
          .exit_code != 0)
    GGUFMILL_SKIP("no openssl to make a certificate");
  const TestServer server(certificate, key);
  make_model(server.file("model.gguf"));
  const std::string job = gguf_job(server.url("plain/model.gguf"));
  for (const std::string variable : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const Workplace place({variable + "=" + certificate});
    place.run_job(gguf_job(server.file("model.gguf")));
    const std::string wanted = read_text(place.file("out.gguf"));
    place.run_job(job, 0, {"--overwrite"});
    CHECK(read_text(place.file("out.gguf")) == wanted);
    const std::string down = place.run_job(gguf_job(server.url("downgrade/model.gguf")), 4, {"--overwrite"});
    CHECK(has(down, "the server redirects from https to an unencrypted address"));
  }
  const Workplace stranger;
  CHECK(has(stranger.run_job(job, 6), "certificate"));
}

TEST_CASE("outputs on web servers, and addresses with secrets, are refused") {
  const Workplace place;
  make_model(place.file("model.gguf"));
  CHECK(has(place.run_job(gguf_job("model.gguf", "https://host/out.gguf"), 2),
            "outputs cannot be written to addresses of the scheme"));
  const std::string secret = place.run_job(gguf_job(fmt::format("https://user:{}@host/a.gguf", kToken)), 2);
  CHECK(has(secret, "the address 'https://...@host/a.gguf' contains a user or a password"));
  const std::string query = place.run_job(gguf_job(fmt::format("https://host/a.gguf?signature={}", kSignature)), 2);
  CHECK(has(query, "has a query, which may contain a key"));
}
