// Refuses compilers in an older mode than C++20. Each public header with code includes it before anything else, so that
// this error stands above those that follow from it.
#pragma once

#if __cplusplus < 202002L
#error "Penstock needs C++20: compile with -std=c++20; in CMake, give nvcc's sources to penstock_cuda_sources"
#endif
