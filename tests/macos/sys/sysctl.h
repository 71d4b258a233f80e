#pragma once

#include <stddef.h>

extern "C" int sysctlbyname(const char* name, void* old, size_t* old_bytes, void* set, size_t set_bytes);
