# Included by llama.cpp's CMakeLists.txt when versions.py builds it: the 150 files of models in libllama spend three quarters of
# their time on one header.
cmake_language(DEFER CALL target_precompile_headers llama PRIVATE ${CMAKE_SOURCE_DIR}/src/models/models.h)
