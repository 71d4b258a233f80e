#include "pipeline/cli/program.h"

int main(int argc, char** argv) { return ggufmill::run_program(argc, argv); }
