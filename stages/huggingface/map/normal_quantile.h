#pragma once
// The quantile function of the standard normal distribution.

namespace ggufmill::huggingface {

// Returns the value below which a standard normal variable lies with this probability, in single precision with the
// steps of torch.distributions.Normal.icdf; infinite for 0 and 1, NaN outside of them.
float normal_quantile(float probability);

}  // namespace ggufmill::huggingface
