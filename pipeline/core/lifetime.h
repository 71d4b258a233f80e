#pragma once
// An attribute for functions whose result refers to their arguments.

// Marks a parameter that must outlive the result; after the parameters of a member function, it marks the object. Clang
// warns (-Wdangling) of a temporary in its place that ends before the result does; other compilers do not check it.
#ifdef __clang__
#define GGUFMILL_OUTLIVES_RESULT [[clang::lifetimebound]]
#else
#define GGUFMILL_OUTLIVES_RESULT
#endif
