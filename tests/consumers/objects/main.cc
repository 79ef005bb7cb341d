// A program with plugins, given as paths: all declare parts of one graph. Exit code 0 if each part runs its own code,
// types are what they are in all of them, and the plugins are gone once what holds their callables is.
#include <dlfcn.h>

#include <cstdio>
#include <string>
#include <vector>

#include "part.h"

namespace {

int failures = 0;
void Expect(bool right, const std::string& what) {
  if (right) return;
  ++failures;
  std::printf("wrong: %s\n", what.c_str());
}

constexpr float kAdds[] = {1, 10, 100};  // of each plugin

void RunTogether(const std::vector<const Part*>& parts) {
  auto runtime = ps::Runtime::Create({.devices = "host:2"});
  int alive = 0;
  for (const ps::Mode mode : {ps::Mode::kStream, ps::Mode::kGraph}) {
    ps::Graph graph("together");
    auto by = graph.Param<float>("by");
    auto x = graph.InOut<float>("x", 4);
    float wanted = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      parts[p]->declare(graph, by, x, &alive);
      wanted += kAdds[p] * (2 * 3 + 2);
    }
    auto exec = runtime->Compile(graph, {.mode = mode});
    Expect(exec.ok(), std::string("Compile: ") + std::string(exec.status().message()));
    if (!exec.ok()) return;
    std::vector<float> v(4, 0);
    auto run = exec->Launch(exec->bindings().Set(by, 3.f).Set(x, v));
    Expect(run.ok() && run->Wait().ok(), "a run");
    Expect(v == std::vector<float>(4, wanted), "four elements, which became " + std::to_string(v[0]));
  }
  Expect(runtime->Shutdown().ok(), "Shutdown");  // then no thread of the runtime has an executable either
  Expect(alive == 0, std::to_string(alive) + " callables are alive");
}

void ShareUnsharedTypes(const Part& a, const Part& b) {
  auto runtime = ps::Runtime::Create({.devices = "host:1"});
  for (const Part* reader : {&a, &b}) {
    ps::Graph graph("pixels");
    const int pixels = a.declare_pixels(graph);
    reader->read_pixels(graph, graph.model().serial, pixels);
    const absl::Status compiled = runtime->Compile(graph).status();
    const bool other = compiled.message().find("a handle of another type") != absl::string_view::npos;
    Expect(reader == &a ? compiled.ok() : other, "pixels: " + compiled.ToString());
  }
  Expect(runtime->Shutdown().ok(), "Shutdown");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<void*> objects;
  std::vector<const Part*> parts;
  for (int i = 1; i < argc; ++i) {
    // The first two so that one's symbols could take the place of the other's.
    objects.push_back(dlopen(argv[i], RTLD_NOW | (i < 3 ? RTLD_GLOBAL : RTLD_LOCAL)));
    Expect(objects.back() != nullptr, std::string("dlopen: ") + (objects.back() == nullptr ? dlerror() : ""));
    if (objects.back() == nullptr) return 1;
    parts.push_back(static_cast<const Part*>(dlsym(objects.back(), "kPart")));
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    Expect(parts[p]->run_own() == static_cast<int>(4 * kAdds[p]), "a plugin's own graph");
  }
  RunTogether(parts);
  ShareUnsharedTypes(*parts[0], *parts[1]);
  for (size_t p = parts.size(); p > 0; --p) dlclose(objects[p - 1]);
  for (int i = 1; i < argc; ++i) {
    Expect(dlopen(argv[i], RTLD_NOW | RTLD_NOLOAD) == nullptr, std::string(argv[i]) + " is still loaded");
  }
  return failures == 0 ? 0 : 1;
}
