#pragma once
// The values of a card's placeholders.

#include <kainjow/mustache.hpp>
#include <string>
#include <string_view>

#include "pipeline/api/publish/card/card.h"

namespace ggufmill {

inline constexpr std::string_view kHub = "https://huggingface.co/";

// Returns the front matter without the lines around it.
std::string front_matter_of(const Card& card);

// Returns all placeholders with their values.
kainjow::mustache::data card_values(const Card& card);

}  // namespace ggufmill
