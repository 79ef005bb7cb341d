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

# hwloc, for one file (src/memory/CMakeLists.txt). Under our own name, so that the installed package can offer the same
# target to users who have the library and no headers of it.
find_path(PENSTOCK_HWLOC_INCLUDE_DIR hwloc.h DOC "Where hwloc.h is")
find_library(PENSTOCK_HWLOC_LIBRARY hwloc DOC "hwloc's library, version 2")
mark_as_advanced(PENSTOCK_HWLOC_INCLUDE_DIR PENSTOCK_HWLOC_LIBRARY)
if(NOT PENSTOCK_HWLOC_INCLUDE_DIR OR NOT PENSTOCK_HWLOC_LIBRARY)
  message(FATAL_ERROR "penstock: hwloc 2 is not found; install libhwloc-dev, or set PENSTOCK_HWLOC_INCLUDE_DIR and "
                      "PENSTOCK_HWLOC_LIBRARY")
endif()
set(PENSTOCK_HWLOC_INCLUDE_DIRS ${PENSTOCK_HWLOC_INCLUDE_DIR})
list(REMOVE_ITEM PENSTOCK_HWLOC_INCLUDE_DIRS ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
add_library(penstock::hwloc UNKNOWN IMPORTED GLOBAL)
set_target_properties(penstock::hwloc PROPERTIES IMPORTED_LOCATION ${PENSTOCK_HWLOC_LIBRARY})
