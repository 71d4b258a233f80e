# find_package(ggufmill) defines ggufmill::ggufmill, the library, and ggufmill::abi, the header for kernel modules.
# find_package(ggufmill COMPONENTS abi) defines only the latter, which has no dependencies.
include("${CMAKE_CURRENT_LIST_DIR}/ggufmill-abi-targets.cmake")
set(ggufmill_abi_FOUND TRUE)
if(NOT "${ggufmill_FIND_COMPONENTS}" STREQUAL "abi")
  include("${CMAKE_CURRENT_LIST_DIR}/ggufmill-targets.cmake")
endif()
