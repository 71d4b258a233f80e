# Installs the build, moves the installed tree, and builds and runs the consumers there.
set(work ${BUILD}/tests/consumers/work)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(build project)
  set(flags "")
  if(SANITIZE)
    set(flags -fsanitize=${SANITIZE})
  endif()
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/${project} -B ${work}/${project} -G ${GENERATOR}
    -D CMAKE_PREFIX_PATH=${work}/moved -D CMAKE_BUILD_TYPE=Debug -D CMAKE_C_COMPILER=${CC}
    -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_FLAGS=${flags} -D CMAKE_CXX_FLAGS=${flags})
  run(${CMAKE_COMMAND} --build ${work}/${project})
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/installed)
file(RENAME ${work}/installed ${work}/moved)

# Only these headers are installed.
file(GLOB_RECURSE headers RELATIVE ${work}/moved/include ${work}/moved/include/*)
list(SORT headers)
if(NOT headers STREQUAL "ggufmill.h;ggufmill.hpp;ggufmill_kernels.h")
  message(FATAL_ERROR "installed headers: ${headers}")
endif()

run(${BUILD}/tests/ggufmill-make-gguf ${work}/model.gguf tiny)
file(MAKE_DIRECTORY ${work}/out)
foreach(language c cpp)
  build(${language})
  run(${work}/${language}/quantize ${work}/model.gguf ${work}/out)
endforeach()
file(SHA256 ${work}/out/c.gguf expected)
file(SHA256 ${work}/out/cpp.gguf found)
if(NOT found STREQUAL expected)
  message(FATAL_ERROR "c.gguf and cpp.gguf differ")
endif()
if(PYTHON AND NOT SANITIZE) # Python itself would have to be built with the sanitizer
  run(${PYTHON} ${CMAKE_CURRENT_LIST_DIR}/python/quantize.py ${work}/moved/${LIBDIR}/libggufmill.so ${work}/model.gguf
    ${work}/out)
endif()

# A compiler finds the library with pkg-config, wherever the files are.
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG AND NOT SANITIZE)
  set(ENV{PKG_CONFIG_PATH} ${work}/moved/${LIBDIR}/pkgconfig)
  run(${PKG_CONFIG} --cflags --libs ggufmill)
  separate_arguments(flags UNIX_COMMAND "${output}")
  run(${CC} ${CMAKE_CURRENT_LIST_DIR}/c/quantize.c -o ${work}/with_pkg_config ${flags}
    -Wl,-rpath,${work}/moved/${LIBDIR})
  file(MAKE_DIRECTORY ${work}/out2)
  run(${work}/with_pkg_config ${work}/model.gguf ${work}/out2)
endif()

# The module of plugins/README.md, which has these files in full.
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../plugins/README.md page)
foreach(file mine.c CMakeLists.txt)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/module/${file} text)
  string(FIND "${page}" "\n${text}```\n" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "plugins/README.md has another ${file} than tests/consumers/module")
  endif()
endforeach()
build(module)
file(CHMOD_RECURSE ${work}/module PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
run(${work}/moved/bin/ggufmill kernels --kernel-dir ${work}/module)
foreach(expected "${work}/moved/${LIBDIR}/ggufmill/reference.so" "X4_MINE +reference \\(mine\\)")
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "not found: ${expected}\n${output}")
  endif()
endforeach()
run(${work}/moved/bin/ggufmill kernels --check ${work}/module/mine.so)
get_filename_component(cmake_folder ${CMAKE_COMMAND} DIRECTORY)
run(${cmake_folder}/cpack --config ${work}/module/CPackConfig.cmake -B ${work}/package)
