// Calls with an argument that does not fit, one for each WRONG. scripts/check_headers.sh compiles each and looks among
// the errors for the text of its line, a pattern of grep.
#include "penstock/ps.h"

namespace {

struct Axpy {
  void operator()(int64_t i, float a, const float* x, ps::View<float> y) const { y(i) += a * x[i]; }
};
void Kernel(double, const float*, float*) {}

void Declare(ps::Graph& g, ps::ParamHandle<float> a, ps::BufferHandle<float> x, ps::BufferHandle<double> d) {
#if WRONG == 0
  g.ParallelFor("f", 8, Axpy{}, a, ps::Read(x), ps::Write(x));
  g.Kernel("k", Kernel, ps::Threads(8), 1.0, ps::Read(x), ps::Write(x));
  (void)d;
#elif WRONG == 1  // argument 2 of those for the callable does not fit
  g.ParallelFor("f", 8, Axpy{}, a, ps::Read(d), ps::Write(x));
#elif WRONG == 2  // a Write or ReadWrite of T gives a functor T\* or View<T>
  g.ParallelFor("f", 8, Axpy{}, a, ps::Read(x), ps::Write(d));
#elif WRONG == 3  // ArgumentFits.*3.*AccessOf<double
  g.ParallelFor("f", 8, Axpy{}, a, ps::Read(x), ps::Write(d));
#elif WRONG == 4  // the functor cannot be called with an index and as many arguments as stand behind it
  g.ParallelFor("f", 8, Axpy{}, a, ps::Read(x));
#elif WRONG == 5  // argument 1 of those for the callable does not fit
  g.Host("h", [](std::span<float>, float) {}, ps::Read(x), a);
#elif WRONG == 6  // a Read of T gives a Host node std::span<const T> or View<const T>
  g.Host("h", [](std::span<float>, float) {}, ps::Read(x), a);
#elif WRONG == 7  // a Read of T gives a Launch node const T\*
  g.Launch("l", [](ps::LaunchContext&, float, float*) {}, a, ps::Read(x));
#elif WRONG == 8  // the kernel takes K, and the parameter has another type, that of A
  g.Kernel("k", Kernel, ps::Threads(8), a, ps::Read(x), ps::Write(x));
#elif WRONG == 9  // CheckKernelArg.*double.*ParamHandle<float>
  g.Kernel("k", Kernel, ps::Threads(8), a, ps::Read(x), ps::Write(x));
#elif WRONG == 10  // argument 2 of those for the callable does not fit
  g.Kernel("k", Kernel, ps::Threads(8), 1.0, ps::Read(d), ps::Write(x));
#elif WRONG == 11  // the host fallback takes the arguments of the device code
  g.Launch("l", [](ps::LaunchContext&, const float*) {}, ps::Read(x)).HostFallback([](float*) {});
#elif WRONG == 12  // All of accesses to T gives a ps::Views<T>, of const T if they only read
  g.Host("h", [](ps::Views<float>) {}, ps::All(std::vector{ps::Read(x)}));
#elif WRONG == 13  // a kernel takes All of accesses to T as a ps::ViewTable<T, n>, of const T if they only read
  g.Kernel("k", Kernel, ps::Threads(8), 1.0, ps::All(std::vector{ps::Read(x)}), ps::Write(x));
#endif
}

}  // namespace

void Use(ps::Graph& g) { Declare(g, g.Param<float>("a"), g.InOut<float>("x", 8), g.InOut<double>("d", 8)); }
