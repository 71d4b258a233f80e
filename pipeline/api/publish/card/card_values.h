#pragma once
// The values of a card's placeholders.

#include <kainjow/mustache.hpp>

#include "pipeline/api/publish/card/card.h"

namespace ggufmill {

// Returns all placeholders with their values.
kainjow::mustache::data card_values(const Card& card);

}  // namespace ggufmill
