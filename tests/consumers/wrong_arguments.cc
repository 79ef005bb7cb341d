// Calls with an argument that does not fit. scripts/check_headers.sh compiles them and looks for the texts of the
// comments in front of a call, patterns of grep, among the errors that g++ gives for this call.
#include <vector>

#include "penstock/ps.h"

namespace {

struct Axpy {
  void operator()(int64_t i, float a, const float* x, ps::View<float> y) const { y(i) += a * x[i]; }
};
void Kernel(double, const float*, float*) {}
struct Tile {
  void operator()(const ps::Block& block, const float* x, float a) const {
    block.Each(1, [&](int64_t i) { (void)(x[i] + a); });
  }
};
struct Product {
  float operator()(int64_t i, const float* x) const { return x[i]; }
};
struct Weighted {
  float operator()(int64_t i, int a, int b, int c, const float* x) const {
    return x[i] * static_cast<float>(a + b + c);
  }
};
struct Nothing {
  void operator()(int64_t, const float*) const {}
};
struct Pair {
  explicit Pair(int n) : a(n), b(n) {}
  int a, b;
};
struct Either {
  Pair operator()(const Pair& a, const Pair&) const { return a; }
};
struct IsSmall {
  bool operator()(const float* x) const { return *x < 1; }
};
struct Large {
  char bytes[300];
};
struct IsLow {
  bool operator()(float x) const { return x < 1; }
};
struct Owns {
  std::vector<float> bounds;
  bool operator()(float x) const { return x < bounds[0]; }
};
struct Sum {
  std::vector<float> terms;
  float operator()(float a, float b) const { return a + b; }
};

void Declare(ps::Graph& g, ps::ParamHandle<float> a, ps::BufferHandle<float> x, ps::BufferHandle<double> d,
             ps::BufferHandle<Pair> p, ps::BufferHandle<int64_t> n) {
  // a Read of T gives a functor const T\* or View<const T>
  g.ParallelFor("f", 8, Axpy{}, a, ps::Read(d), ps::Write(x));
  // a Write or ReadWrite of T gives a functor T\* or View<T>
  // argument 3 of those for the callable does not fit
  // ArgumentFits.*3.*AccessOf<double
  g.ParallelFor("f", 8, Axpy{}, a, ps::Read(x), ps::Write(d));
  // the functor cannot be called with an index and as many arguments as follow it
  g.ParallelFor("f", 8, Axpy{}, a, ps::Read(x));
  // a Read of T gives a functor const T\* or View<const T>
  g.Task("t", Tile{}, ps::Read(d), a);
  // the functor of a Task cannot be called with a ps::Block and as many arguments as follow it
  g.Task("t", {.threads = 32}, Tile{}, ps::Read(x));
  // argument 1 of those for the callable does not fit
  // a Read of T gives a Host node std::span<const T> or View<const T>
  g.Host("h", [](std::span<float>, float) {}, ps::Read(x), a);
  // argument 2 of those for the callable does not fit
  // a Read of T gives a Launch node const T\*
  g.Launch("l", [](ps::LaunchContext&, float, float*) {}, a, ps::Read(x));
  // the kernel takes K, and the parameter has another type, that of A
  // CheckKernelArg.*double.*ParamHandle<float>
  g.Kernel("k", Kernel, ps::Threads(8), a, ps::Read(x), ps::Write(x));
  // the kernel takes another element type, or writes what the access only reads: a Read of T gives const T\*
  g.Kernel("k", Kernel, ps::Threads(8), 1.0, ps::Read(d), ps::Write(x));
  // the host fallback takes the arguments of the device code
  g.Launch("l", [](ps::LaunchContext&, const float*) {}, ps::Read(x)).HostFallback([](float*) {});
  // All of accesses to T gives a ps::Views<T>, of const T if they only read
  g.Host("h", [](ps::Views<float>) {}, ps::All(std::vector{ps::Read(x)}));
  // a kernel takes All of accesses to T as a ps::ViewTable<T, n>, of const T if they only read
  g.Kernel("k", Kernel, ps::Threads(8), 1.0, ps::All(std::vector{ps::Read(x)}), ps::Write(x));
  // argument 4 of those for the callable does not fit
  // a Read of T gives a functor const T\* or View<const T>
  g.TransformReduce("r", 8, Weighted{}, ps::Plus(), 0, 1, 2, 3, ps::Read(d), ps::Write(x));
  // the last argument of a TransformReduce is where its result goes
  g.TransformReduce("r", 8, Product{}, ps::Plus(), 0, ps::Read(x), ps::ReadWrite(x));
  // what the functor of a TransformReduce returns does not convert to the result's type
  g.TransformReduce("r", 8, Nothing{}, ps::Plus(), 0, ps::Read(x), ps::Write(x));
  // the operation of a Reduce takes two values of the result's type and returns one
  g.Reduce("r", ps::Read(x), ps::Write(x), Either{}, 0);
  // name the identity of the operation
  g.Reduce("r", ps::Read(p), ps::Write(p), Either{});
  // the operation of a Reduce takes two values of the result's type and returns one
  // there is no T{} to be the sum of no values; name the identity
  g.Reduce("r", ps::Read(p), ps::Write(p));
  // the elements do not convert to the type of the result
  g.Reduce("r", ps::Read(x), ps::Write(p), Either{}, Pair(1));
  // the result of a Reduce has at most 256 bytes
  g.Reduce("r", ps::Read(g.Input<Large>("l", 8)), ps::Write(g.Buffer<Large>("b", 1)));
  // only the condition of a While tells its iterations, by Count and Capped
  g.If("i", ps::When(IsSmall{}, ps::Read(x)).Count(n), [](ps::Graph&) {});
  // only the condition of a While tells its iterations, by Count and Capped
  g.Switch("s", ps::When(IsSmall{}, ps::Read(x)).Capped(n));
  // Count takes a buffer of 32 or 64 bit integers
  g.While("w", ps::When(IsSmall{}, ps::Read(x)).Count(x), {}, [](ps::Graph&) {});
  // a condition only reads; compute what it reads in a node before it
  g.While("w", ps::When(IsSmall{}, ps::ReadWrite(x)).Count(n), {}, [](ps::Graph&) {});
  // the number of iterations of a Repeat is an integer
  g.Repeat("r", ps::Read(x), [](ps::Graph&) {});
  // the count of a CountOf is one integer
  g.ParallelFor("c", ps::CountOf(x, 8), Product{}, ps::Read(x));
  // a Read of T gives a functor const T\* or View<const T>
  g.ParallelFor("c", ps::CountOf(n, 8), Product{}, ps::Read(d));
  // the functor of a Transform takes one element of each buffer that is read
  ps::Transform(g, "t", ps::Read(x), ps::Read(x), ps::Write(x), IsLow{});
  // the functor of a Transform goes to the device as bytes: it must be trivially copyable
  ps::Transform(g, "t", ps::Read(x), ps::Write(x), Owns{});
  // the operation of a Scan takes two values of the result's type and returns one
  ps::Scan(g, "s", ps::Read(x), ps::Write(x), Either{}, 0);
  // the operation of a Scan is trivially copyable
  ps::Scan(g, "s", ps::Read(x), ps::Write(x), Sum{}, 0);
  // name the initial value of the Scan after its operation
  ps::Scan(g, "s", ps::Read(p), ps::Write(p), Either{});
  // the elements of a Scan do not convert to the type of the result
  ps::Scan(g, "s", ps::Read(x), ps::Write(p), Either{}, Pair(1));
  // the result of a Scan has at most 64 bytes for each element
  ps::Scan(g, "s", ps::Read(g.Input<Large>("l", 8)), ps::Write(g.Buffer<Large>("b", 8)));
  // the count of a Select is one integer
  ps::Select(g, "k", ps::Read(x), ps::Write(x), ps::Write(x), IsLow{});
  // the predicate of a Select is trivially copyable
  ps::Select(g, "k", ps::Read(x), ps::Write(x), ps::Write(n), Owns{});
  // the predicate of a Select takes one element and returns a bool
  ps::Select(g, "k", ps::Read(x), ps::Write(x), ps::Write(n), Either{});
  // the elements of a Select do not convert to the type of the result
  ps::Select(g, "k", ps::Read(x), ps::Write(p), ps::Write(n), IsLow{});
  // the expression has another type than the elements that the Map writes
  ps::Map(g, "m", ps::Write(x), ps::expr::Of(d) + 1);
  // a Map writes uint8_t, int32_t, int64_t, float or double
  ps::Map(g, "m", ps::Write(p), 1);
  // a Map writes an expression of penstock/expr.h
  ps::Map(g, "m", ps::Write(x), IsLow{});
  // a Map writes a number with a fraction to integers
  ps::Map(g, "m", ps::Write(n), 0.5);
  // a number with a fraction stands beside integers
  ps::Map(g, "m", ps::Write(n), ps::expr::Of(n) * 0.5);
  // an unsigned number of 64 bits stands beside integers
  ps::Map(g, "m", ps::Write(n), ps::expr::Of(n) * sizeof(int));
  // expressions are of bool, uint8_t, int32_t, int64_t, float and double
  ps::Map(g, "m", ps::Write(x), ps::expr::Of(g.Input<uint16_t>("u", 8)));
  // Sqrt, Exp, Log, Tanh, Sin and Cos take a float or a double
  ps::Map(g, "m", ps::Write(n), ps::expr::Sqrt(ps::expr::Of(n)));
  // Pow takes floats or doubles
  ps::Map(g, "m", ps::Write(n), ps::expr::Pow(ps::expr::Of(n), 2));
}

}  // namespace

void Use(ps::Graph& g) {
  Declare(g, g.Param<float>("a"), g.InOut<float>("x", 8), g.InOut<double>("d", 8), g.InOut<Pair>("p", 8));
}
