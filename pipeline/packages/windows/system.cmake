# What the build for Windows 10 and later needs: everything is linked into the programs.
target_compile_definitions(ggufmill_options INTERFACE WIN32_LEAN_AND_MEAN NOMINMAX UNICODE _WIN32_WINNT=0x0A00)
target_include_directories(ggufmill_options SYSTEM INTERFACE ${GGUFMILL_WINDOWS_LIBRARIES}/include)
target_link_options(ggufmill_options INTERFACE -static -Wl,--no-insert-timestamp -Wl,--stack,0x800000)
add_library(ggufmill_fmaf STATIC pipeline/packages/windows/fmaf.c)
target_compile_options(ggufmill_fmaf PRIVATE -O2 -ffp-contract=off)
target_link_libraries(ggufmill_options INTERFACE ggufmill_fmaf)

# What the targets of static libraries do not say of themselves.
set_property(TARGET ICU::uc APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS U_STATIC_IMPLEMENTATION)
set_property(TARGET OpenSSL::Crypto APPEND PROPERTY INTERFACE_LINK_LIBRARIES ws2_32 crypt32 advapi32 user32)
set_property(TARGET PkgConfig::PCRE2 APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS PCRE2_STATIC)

set(GGUFMILL_LIBRARY_FILE libggufmill.dll)
set(GGUFMILL_EXPORTS_BY_DEFINITIONS ON) # a linker takes a .def there, no version script

# The program's version, and that it takes long paths and UTF-8.
enable_language(RC)
configure_file(pipeline/packages/windows/program.rc.in ${PROJECT_BINARY_DIR}/generated/program.rc @ONLY)
cmake_language(DEFER CALL target_sources ggufmill PRIVATE ${PROJECT_BINARY_DIR}/generated/program.rc)

# A process cannot copy itself there: it lets this program load a module first.
function(ggufmill_module_trial)
  add_executable(ggufmill-module-trial pipeline/kernels/trial_main.cpp)
  target_link_libraries(ggufmill-module-trial PRIVATE ggufmill_kernels)
  set_target_properties(ggufmill-module-trial PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${GGUFMILL_MODULE_DIR})
  add_dependencies(ggufmill_modules ggufmill-module-trial)
  install(TARGETS ggufmill-module-trial DESTINATION ${CMAKE_INSTALL_LIBDIR}/ggufmill)
endfunction()
cmake_language(DEFER CALL ggufmill_module_trial)
