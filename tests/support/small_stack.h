// OnSmallStack: runs work in a thread with 256 KiB of stack, which recursion over thousands of nodes or runs overflows.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

namespace penstock {

inline void OnSmallStack(const std::function<void()>& work) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, size_t{256} << 10);
  pthread_t thread;
  const auto run = [](void* of) -> void* {
    (*static_cast<const std::function<void()>*>(of))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &small, run, const_cast<std::function<void()>*>(&work)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&small);
}

}  // namespace penstock
