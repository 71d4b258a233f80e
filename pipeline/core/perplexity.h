#pragma once
// A run of llama-perplexity, a program of llama.cpp that predicts a text with a model.

#include <string>
#include <vector>

namespace ggufmill {

struct PerplexityOptions {
  static constexpr unsigned kMinContext = 8;  // tokens

  std::string program = "llama-perplexity";
  std::string text;                  // path of the text
  unsigned chunks = 0;               // of the text; 0: all
  unsigned context = 512;            // tokens per chunk
  std::vector<std::string> options;  // further arguments of the program
};

}  // namespace ggufmill
