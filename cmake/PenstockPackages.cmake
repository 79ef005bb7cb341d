# What the library needs from elsewhere. Targets are made global only where the embedding project has none of its own
# yet, so that targets of a sibling folder can link penstock::penstock.
if(NOT TARGET Threads::Threads)
  find_package(Threads REQUIRED GLOBAL)
endif()
if(NOT TARGET absl::statusor)
  find_package(absl REQUIRED GLOBAL)
endif()

# spdlog and fmt are used header-only by one file (src/base/CMakeLists.txt), so only their include directories matter.
find_package(spdlog REQUIRED)
get_target_property(PENSTOCK_SPDLOG_INCLUDE_DIRS spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)
list(REMOVE_ITEM PENSTOCK_SPDLOG_INCLUDE_DIRS ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
