// All of Penstock that needs no CUDA header.
#pragma once

#include "penstock/await.h"
#include "penstock/compile_options.h"
#include "penstock/executable.h"
#include "penstock/graph.h"
#include "penstock/graph_cache.h"
#include "penstock/host_buffer.h"
#include "penstock/item.h"
#include "penstock/lease.h"
#include "penstock/pipeline.h"
#include "penstock/replicated_state.h"
#include "penstock/run.h"
#include "penstock/runtime.h"
#include "penstock/state.h"
#include "penstock/status_macros.h"
#include "penstock/trace.h"
#include "penstock/version.h"
