#pragma once
// A program that runs from an archive made by `./dev dist`, on a system whose libraries and settings may be of any age.

namespace ggufmill {

// Call first in main(). In an archive, gives the process its name, gives programs that it starts the environment that
// bin/ggufmill was started with, and lets no configuration of the system load a library of the system.
void prepare_for_archive();

}  // namespace ggufmill
