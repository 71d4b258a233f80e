# Cross-compiles for 64-bit Windows with MinGW-w64, the libraries that `dependencies` has built, and Wine to run tests.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
# GCC aligns the stack to 16 bytes there, but stores vectors of 32 and 64 bytes with instructions that require their
# alignment (GCC bug 54412). The assembler replaces these instructions with those that do not.
set(CMAKE_C_FLAGS_INIT "-Wa,-muse-unaligned-vector-move")
set(CMAKE_CXX_FLAGS_INIT "-Wa,-muse-unaligned-vector-move")

set(CMAKE_MODULE_LINKER_FLAGS_INIT -static)

set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GGUFMILL_WINDOWS_LIBRARIES)
if(NOT GGUFMILL_WINDOWS_LIBRARIES)
  get_filename_component(GGUFMILL_WINDOWS_LIBRARIES ${CMAKE_CURRENT_LIST_DIR}/../../../build/windows-libraries ABSOLUTE)
endif()
set(CMAKE_FIND_ROOT_PATH ${GGUFMILL_WINDOWS_LIBRARIES})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${GGUFMILL_WINDOWS_LIBRARIES}/lib/pkgconfig)
set(PKG_CONFIG_ARGN --define-prefix) # some name /usr

# Runs tests.
find_program(GGUFMILL_WINE NAMES wine64 wine HINTS /usr/lib/wine NO_CMAKE_FIND_ROOT_PATH)
if(GGUFMILL_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${GGUFMILL_WINE})
endif()
