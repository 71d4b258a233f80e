// The main program of every test executable. Catch2 3 provides its own.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include "tests/support/catch.h"
#endif
