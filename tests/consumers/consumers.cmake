# Installs the build, moves the installed tree, and builds and runs both consumers there.
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
    -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_CXX_FLAGS=${flags})
  run(${CMAKE_COMMAND} --build ${work}/${project})
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/installed)
file(RENAME ${work}/installed ${work}/moved)

build(embed)
run(${BUILD}/tests/ggufmill-make-gguf ${work}/model.gguf tiny)
file(MAKE_DIRECTORY ${work}/out)
run(${work}/embed/embed ${work}/model.gguf ${work}/out)

build(module)
file(CHMOD_RECURSE ${work}/module PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
run(${work}/moved/bin/ggufmill kernels --kernel-dir ${work}/module)
foreach(expected "${work}/moved/${LIBDIR}/ggufmill/reference.so" "X3_EXAMPLE +reference \\(example\\)")
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "not found: ${expected}\n${output}")
  endif()
endforeach()
