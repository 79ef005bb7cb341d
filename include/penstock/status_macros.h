// Status propagation. The other macros of the library: PENSTOCK_HOST_DEVICE, PENSTOCK_ON_CUDA and
// PENSTOCK_AWAIT_DEPENDENCIES, in detail/.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define PENSTOCK_CONCAT_INNER(a, b) a##b
#define PENSTOCK_CONCAT(a, b) PENSTOCK_CONCAT_INNER(a, b)

// Evaluates `expr`, an absl::Status, once; returns it from the enclosing function unless it is OK.
#define PENSTOCK_RETURN_IF_ERROR(expr)                                  \
  do {                                                                  \
    if (absl::Status penstock_status = (expr); !penstock_status.ok()) { \
      return penstock_status;                                           \
    }                                                                   \
  } while (false)

// Evaluates `expr`, an absl::StatusOr, once; declares or assigns `lhs` from its value, or returns its error.
#define PENSTOCK_ASSIGN_OR_RETURN(lhs, ...) \
  PENSTOCK_ASSIGN_OR_RETURN_IMPL(PENSTOCK_CONCAT(penstock_or_, __LINE__), lhs, __VA_ARGS__)
#define PENSTOCK_ASSIGN_OR_RETURN_IMPL(tmp, lhs, ...) \
  auto tmp = (__VA_ARGS__);                           \
  if (!tmp.ok()) return std::move(tmp).status();      \
  lhs = *std::move(tmp)
