# Wings: large parts that few readers need, and without which the tree also builds, tests and documents itself. Each is a
# row of configs/wings.tsv: its name, its folders, what it does, patterns of the words with which users ask for it
# (pipeline/core/wings.h), and patterns of its identifiers, which no file outside of the folders has
# (tests/architecture_test.cpp). The folders register what they have with the functions below.
set(GGUFMILL_WITH all CACHE STRING "Wings to build: all, or a list of names from configs/wings.tsv, which may be empty")

get_filename_component(GGUFMILL_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY) # not that of the project: tests/arm64/cross is another
set(wings_file ${GGUFMILL_ROOT}/configs/wings.tsv)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${wings_file})
file(STRINGS ${wings_file} rows)
list(POP_FRONT rows)
set(names "")
set(GGUFMILL_WING_FOLDERS "") # of those that are built
set(GGUFMILL_OMITTED_FOLDERS "")
set(GGUFMILL_OMITTED_WINGS "") # rows of C++
set(GGUFMILL_OMITTED_WING_COUNT 0)
foreach(row ${rows})
  string(REPLACE "\t" ";" columns "${row}")
  list(GET columns 0 name)
  list(GET columns 1 folders)
  list(GET columns 2 what)
  list(GET columns 3 words)
  list(APPEND names ${name})
  string(REPLACE " " ";" folders "${folders}")
  if(GGUFMILL_WITH STREQUAL "all" OR name IN_LIST GGUFMILL_WITH)
    list(APPEND GGUFMILL_WING_FOLDERS ${folders})
  else()
    list(APPEND GGUFMILL_OMITTED_FOLDERS ${folders})
    string(APPEND GGUFMILL_OMITTED_WINGS "      {\"${name}\", \"${what}\", \"${words}\"},\n")
    math(EXPR GGUFMILL_OMITTED_WING_COUNT "${GGUFMILL_OMITTED_WING_COUNT} + 1")
  endif()
endforeach()
foreach(name ${GGUFMILL_WITH})
  if(NOT name IN_LIST names AND NOT GGUFMILL_WITH STREQUAL "all")
    message(FATAL_ERROR "GGUFMILL_WITH: there is no wing ${name}; configs/wings.tsv has ${names}")
  endif()
endforeach()

# ggufmill_wings([SUBFOLDER]): adds the folders of wings that lie in this one or, with SUBFOLDER, that subfolder of all
# folders of wings.
function(ggufmill_wings)
  file(RELATIVE_PATH here ${GGUFMILL_ROOT} ${CMAKE_CURRENT_SOURCE_DIR})
  foreach(folder ${GGUFMILL_WING_FOLDERS})
    get_filename_component(parent ${folder} DIRECTORY)
    if(NOT ARGN AND parent STREQUAL here)
      add_subdirectory(${GGUFMILL_ROOT}/${folder} ${PROJECT_BINARY_DIR}/${folder})
    elseif(ARGN AND EXISTS ${GGUFMILL_ROOT}/${folder}/${ARGN}/CMakeLists.txt)
      add_subdirectory(${GGUFMILL_ROOT}/${folder}/${ARGN} ${PROJECT_BINARY_DIR}/${folder}/${ARGN})
    endif()
  endforeach()
endfunction()

# ggufmill_job_sections(NAME TYPE HEADER SOURCES...): registers sections of pipeline files. HEADER defines TYPESections, for a
# job, and TYPEOutputSections, for each of its outputs, which Job::sections.NAME and JobOutput::sections.NAME contain; the
# sources define NAME_fields() and NAME_output_fields(), their fields.
function(ggufmill_job_sections name type header)
  file(RELATIVE_PATH folder ${GGUFMILL_ROOT} ${CMAKE_CURRENT_LIST_DIR})
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
  list(JOIN ARGN "|" sources)
  set_property(GLOBAL APPEND PROPERTY GGUFMILL_JOB_SECTIONS "${name}|${type}|${folder}/${header}|${sources}")
endfunction()

# ggufmill_job_steps(LIBRARY): registers the library that defines the functions of pipeline/api/job_steps.h.
function(ggufmill_job_steps library)
  set_property(GLOBAL PROPERTY GGUFMILL_JOB_STEPS ${library})
endfunction()

# ggufmill_type_family(NAME SOURCES...): registers the family of types NAME_type_family(), which the sources define.
function(ggufmill_type_family name)
  set_property(GLOBAL APPEND PROPERTY GGUFMILL_TYPE_FAMILIES ${name})
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
  set_property(GLOBAL APPEND PROPERTY GGUFMILL_TYPE_FAMILY_SOURCES ${ARGN})
endfunction()

# ggufmill_wing_modules(NAME FOLDER TARGETS...): registers kernel modules with a package of their own, ggufmill-NAME. In the
# build folder they are in FOLDER, apart from the others, and are loaded only with --kernel-dir. GGUFMILL_WING_MODULES has
# these folders.
function(ggufmill_wing_modules name folder)
  set_property(GLOBAL APPEND PROPERTY GGUFMILL_WING_MODULES ${folder})
  set_property(GLOBAL APPEND PROPERTY GGUFMILL_WING_MODULE_TARGETS ${ARGN})
  set(installed ggufmill)
  if(GGUFMILL_ARCHIVE OR NOT UNIX) # where all packages are one, they are apart there as well
    set(installed ggufmill-${name})
  endif()
  install(TARGETS ${ARGN} DESTINATION ${CMAKE_INSTALL_LIBDIR}/${installed} COMPONENT ${name})
endfunction()

# ggufmill_package(NAME DESCRIPTION CHECK): registers the package of Debian that the component NAME becomes: ggufmill-NAME.
# CHECK is a script that tests/packages/packages.cmake includes.
function(ggufmill_package name description check)
  set_property(GLOBAL APPEND PROPERTY GGUFMILL_PACKAGES ${name})
  set_property(GLOBAL APPEND PROPERTY GGUFMILL_PACKAGE_CHECKS ${CMAKE_CURRENT_SOURCE_DIR}/${check})
  set_property(GLOBAL PROPERTY GGUFMILL_PACKAGE_${name} "${description}")
endfunction()

# ggufmill_embedded(FOLDER WHERE): adds the files of the folder WHERE to those of configs/FOLDER, see ggufmill_embed().
function(ggufmill_embedded folder where)
  set_property(GLOBAL APPEND PROPERTY GGUFMILL_EMBEDDED_${folder} ${CMAKE_CURRENT_LIST_DIR}/${where})
endfunction()

# The files wing.cmake in the folders of wings contain their additions to folders that come before theirs.
foreach(folder ${GGUFMILL_WING_FOLDERS})
  include(${GGUFMILL_ROOT}/${folder}/wing.cmake OPTIONAL)
endforeach()
