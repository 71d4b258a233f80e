# Chooses the tests that are built for Windows.

set(GGUFMILL_SYSTEM_TESTS conformance fit golden pipeline windows) # folders of tests/
set(GGUFMILL_NOT_ON_WINDOWS ${PROJECT_SOURCE_DIR}/tests/windows/not_on_windows.tsv)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${GGUFMILL_NOT_ON_WINDOWS})
file(STRINGS ${GGUFMILL_NOT_ON_WINDOWS} ggufmill_rows REGEX "^[^#]")

# ggufmill_reason_not_on_windows(OUT PATH): sets OUT to the reason why a test, whose path is relative to the repository, is
# not built for Windows; to an empty text if it is.
function(ggufmill_reason_not_on_windows out path)
  set(${out} "" PARENT_SCOPE)
  foreach(row ${ggufmill_rows})
    string(REGEX MATCH "^([^\t]*)\t(.*)$" row "${row}")
    set(reason ${CMAKE_MATCH_2})
    if(path MATCHES "${CMAKE_MATCH_1}")
      set(${out} ${reason} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# ggufmill_tests_on_system(OUT SOURCES...): sets OUT to those of the sources that are built for Windows; to an empty list if
# there are no tests among them.
function(ggufmill_tests_on_system out)
  set(left "")
  set(has_tests OFF)
  foreach(source ${ARGN})
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    ggufmill_reason_not_on_windows(reason ${path})
    if(NOT reason)
      list(APPEND left ${source})
      set_property(GLOBAL APPEND PROPERTY GGUFMILL_SOURCES_ON_WINDOWS ${path})
      if(source MATCHES "_test\\.cpp$")
        set(has_tests ON)
      endif()
    endif()
  endforeach()
  if(NOT has_tests)
    set(left "")
  endif()
  set(${out} "${left}" PARENT_SCOPE)
endfunction()

# Writes the tests that are not built, each with its number of cases and the reason, to not_on_windows.tsv in the build
# folder. Every test is either built or listed.
function(ggufmill_list_not_on_windows)
  get_property(built GLOBAL PROPERTY GGUFMILL_SOURCES_ON_WINDOWS)
  file(GLOB_RECURSE sources RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/pipeline/*_test.cpp
    ${PROJECT_SOURCE_DIR}/stages/*_test.cpp ${PROJECT_SOURCE_DIR}/plugins/*_test.cpp ${PROJECT_SOURCE_DIR}/tests/*_test.cpp)
  set(rows "")
  foreach(source ${sources})
    if(source IN_LIST built)
      continue()
    endif()
    ggufmill_reason_not_on_windows(reason ${source})
    if(NOT reason)
      message(FATAL_ERROR "${source} is not built for Windows: add it to its CMakeLists.txt or to ${GGUFMILL_NOT_ON_WINDOWS}")
    endif()
    file(STRINGS ${PROJECT_SOURCE_DIR}/${source} cases REGEX "^(TEMPLATE_)?TEST_CASE|^SCENARIO")
    list(LENGTH cases count)
    string(APPEND rows "${source}\t${count}\t${reason}\n")
  endforeach()
  file(WRITE ${PROJECT_BINARY_DIR}/not_on_windows.tsv "${rows}")
endfunction()
