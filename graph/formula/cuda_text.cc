#include "graph/formula/cuda_text.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace penstock::graph {
namespace {

using detail::Formula;
using detail::FormulaStep;
using detail::Operation;
using detail::ScalarType;

// What does not depend on the formula. Integers are computed without signs, since theirs would be undefined where they
// overflow. A Pack is moved by one instruction.
constexpr const char* kPrelude = R"(typedef unsigned char uint8;
typedef int int32;
typedef long long int64;
struct Range { int64 depth, height, width; };
template <class T> struct View { T* data; int64 depth, height, width, pitch, slice; };
template <int kBytes> struct Word;
template <> struct Word<16> { typedef uint4 type; };
template <> struct Word<8> { typedef uint2 type; };
template <> struct Word<4> { typedef unsigned type; };
template <> struct Word<2> { typedef unsigned short type; };
template <> struct Word<1> { typedef unsigned char type; };
template <class T> struct Pack {
  typedef typename Word<kVector * sizeof(T)>::type Moved;
  T e[kVector];
  __device__ __forceinline__ void Load(const T* from) {
    const Moved moved = *(const Moved*)from;
    memcpy(e, &moved, sizeof(Moved));
  }
  __device__ __forceinline__ void Store(T* to) const {
    Moved moved;
    memcpy(&moved, e, sizeof(Moved));
    *(Moved*)to = moved;
  }
};
template <class T> __device__ __forceinline__ bool IsFlat(const View<T>& v) {
  const bool rows = v.pitch == v.width || (v.height == 1 && v.depth == 1);
  const bool slices = v.slice == v.height * v.pitch || v.depth == 1;
  return rows && slices && (unsigned long long)v.data % (kVector * sizeof(T)) == 0;
}
__device__ __forceinline__ int32 Divide(int32 a, int32 b) {
  return b == 0 ? 0 : b == -1 ? (int32)(0u - (unsigned)a) : a / b;
}
__device__ __forceinline__ int64 Divide(int64 a, int64 b) {
  return b == 0 ? 0 : b == -1 ? (int64)(0ull - (unsigned long long)a) : a / b;
}
template <class T> __device__ __forceinline__ T Truncated(double x, double least, double past, T lowest, T highest) {
  return x >= past ? highest : x >= least ? (T)x : x < least ? lowest : (T)0;
}
)";

const char* NameOf(ScalarType type) {
  constexpr const char* kNames[] = {"bool", "uint8", "int32", "int64", "float", "double"};
  return kNames[static_cast<size_t>(type)];
}
int BytesOf(ScalarType type) {
  constexpr int kBytes[] = {1, 1, 4, 8, 4, 8};
  return kBytes[static_cast<size_t>(type)];
}
bool IsInteger(ScalarType type) { return type != ScalarType::kFloat && type != ScalarType::kDouble; }

std::string Step(int32_t step) { return "v" + std::to_string(step); }
std::string Call(const char* function, const FormulaStep& of) {
  return std::string(function) + "(" + Step(of.a) + (of.b >= 0 ? ", " + Step(of.b) : "") + ")";
}

// A formula stands in the kernel once for each element of a vector. Longer ones would take seconds to compile.
constexpr int kMostInlined = 512;

class Text {
 public:
  explicit Text(const Formula& formula) : f_(formula) {
    int widest = 1;
    for (const ScalarType type : f_.accesses) widest = std::max(widest, BytesOf(type));
    vector_ = 16 / widest;
    const auto steps = static_cast<int>(f_.steps.size());
    while (vector_ > 2 && steps * vector_ > kMostInlined) vector_ /= 2;
    twice_ = steps * vector_ <= kMostInlined / 4;
  }

  std::string Write() const {
    std::string text = "#define kVector " + std::to_string(vector_) + "\n" + kPrelude;
    text += OfElement() + "extern \"C\" __global__ void __launch_bounds__(256) map(Range range, const void*";
    for (size_t a = 0; a < f_.accesses.size(); ++a) text += ", View<" + Element(a) + "> a" + std::to_string(a);
    for (size_t p = 0; p < f_.params.size(); ++p) {
      text += std::string(", ") + NameOf(f_.params[p]) + " p" + std::to_string(p);
    }
    text += ") {\n#if __CUDA_ARCH__ >= 900\n  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n#endif\n";
    return text + OfVectors() + OfRows() + "}\n";
  }

 private:
  std::string Element(size_t access) const {
    const bool reads = access >= f_.written.size();
    return std::string(reads ? "const " : "") + NameOf(f_.accesses[access]);
  }
  // f(access, its number as text) for each, one after the other.
  template <class F>
  std::string ForEach(F f) const {
    std::string text;
    for (size_t a = 0; a < f_.accesses.size(); ++a) text += f(a, std::to_string(a));
    return text;
  }
  std::string Params() const {
    std::string text;
    for (size_t p = 0; p < f_.params.size(); ++p) text += ", p" + std::to_string(p);
    return text;
  }

  // A function that computes one element: it takes references to what is written, then values.
  std::string OfElement() const {
    std::string text = "__device__ __forceinline__ void Element(";
    text += ForEach([&](size_t a, const std::string& number) {
      const bool reads = a >= f_.written.size();
      return std::string(a > 0 ? ", " : "") + Element(a) + (reads ? " e" : "& e") + number;
    });
    for (size_t p = 0; p < f_.params.size(); ++p) {
      text += std::string(", ") + NameOf(f_.params[p]) + " p" + std::to_string(p);
    }
    text += ") {\n";
    for (size_t s = 0; s < f_.steps.size(); ++s) {
      const FormulaStep& step = f_.steps[s];
      text += std::string("  const ") + NameOf(step.type) + " v" + std::to_string(s) + " = " + Of(step) + ";\n";
    }
    for (size_t w = 0; w < f_.written.size(); ++w) {
      text += "  e" + std::to_string(w) + " = " + Step(f_.written[w]) + ";\n";
    }
    return text + "}\n";
  }

  ScalarType TypeOf(int32_t step) const { return f_.steps[static_cast<size_t>(step)].type; }

  std::string Of(const FormulaStep& step) const {
    const bool is_integer = IsInteger(step.type);
    const auto infix = [&](const char* sign) { return Step(step.a) + sign + Step(step.b); };
    // Of integers, without their signs.
    const auto arithmetic = [&](const char* sign) {
      if (!is_integer) return infix(sign);
      const std::string cast = step.type == ScalarType::kInt64 ? "(unsigned long long)" : "(unsigned)";
      const std::string first = step.b >= 0 ? cast + Step(step.a) : cast + "0";
      return "(" + std::string(NameOf(step.type)) + ")(" + first + sign + cast + Step(step.b >= 0 ? step.b : step.a) +
             ")";
    };
    const auto function = [&](const char* of_float, const char* of_double) {
      return Call(step.type == ScalarType::kFloat ? of_float : of_double, step);
    };
    switch (step.operation) {
      case Operation::kRead: return "e" + std::to_string(step.a);
      case Operation::kParam: return "p" + std::to_string(step.a);
      case Operation::kNumber: return Number(step);
      case Operation::kCast: return Cast(step);
      case Operation::kAdd: return arithmetic(" + ");
      case Operation::kSubtract: return arithmetic(" - ");
      case Operation::kMultiply: return arithmetic(" * ");
      case Operation::kDivide: return is_integer ? Call("Divide", step) : infix(" / ");
      case Operation::kNegate: return is_integer ? arithmetic(" - ") : "-" + Step(step.a);
      case Operation::kAbs:
        return is_integer ? Step(step.a) + " < 0 ? " + arithmetic(" - ") + " : " + Step(step.a)
                          : function("fabsf", "fabs");
      case Operation::kMin: return infix(" < ") + " ? " + Step(step.a) + " : " + Step(step.b);
      case Operation::kMax: return infix(" > ") + " ? " + Step(step.a) + " : " + Step(step.b);
      case Operation::kSqrt: return function("sqrtf", "sqrt");
      case Operation::kExp: return function("expf", "exp");
      case Operation::kLog: return function("logf", "log");
      case Operation::kTanh: return function("tanhf", "tanh");
      case Operation::kSin: return function("sinf", "sin");
      case Operation::kCos: return function("cosf", "cos");
      case Operation::kPow: return function("powf", "pow");
      case Operation::kLess: return infix(" < ");
      case Operation::kLessEqual: return infix(" <= ");
      case Operation::kEqual: return infix(" == ");
      case Operation::kNotEqual: return infix(" != ");
      case Operation::kAnd: return infix(" & ");
      case Operation::kOr: return infix(" | ");
      case Operation::kNot: return "!" + Step(step.a);
      case Operation::kSelect: return Step(step.a) + " ? " + Step(step.b) + " : " + Step(step.c);
    }
    return "0";
  }

  // By its bits, so exactly, and for all that a float may be.
  static std::string Number(const FormulaStep& step) {
    char text[64];
    const auto bits = static_cast<unsigned long long>(step.number);
    switch (step.type) {
      case ScalarType::kFloat: std::snprintf(text, sizeof text, "__int_as_float((int)0x%llxu)", bits); break;
      case ScalarType::kDouble: std::snprintf(text, sizeof text, "__longlong_as_double((int64)0x%llxull)", bits); break;
      case ScalarType::kInt64: std::snprintf(text, sizeof text, "(int64)0x%llxull", bits); break;
      default: std::snprintf(text, sizeof text, "(%s)0x%llxu", NameOf(step.type), bits); break;
    }
    return text;
  }

  std::string Cast(const FormulaStep& step) const {
    if (IsInteger(TypeOf(step.a)) || !IsInteger(step.type)) {
      return "(" + std::string(NameOf(step.type)) + ")" + Step(step.a);
    }
    switch (step.type) {  // a float is exact as a double
      case ScalarType::kUint8: return "Truncated<uint8>(" + Step(step.a) + ", 0.0, 255.0, 0, 255)";
      case ScalarType::kInt32:
        return "Truncated<int32>(" + Step(step.a) + ", -2147483648.0, 2147483647.0, -2147483647 - 1, 2147483647)";
      case ScalarType::kInt64:
        return "Truncated<int64>(" + Step(step.a) +
               ", -9223372036854775808.0, 9223372036854775808.0, -9223372036854775807ll - 1, 9223372036854775807ll)";
      default: return Step(step.a) + " != 0";
    }
  }

  // Of a short formula a thread loads two vectors of each access before it stores any, if there are as many, so that
  // more loads are under way; the compiler would move the second load behind the first computation. Those of a block
  // lie side by side. No two vectors have an element in common, and what is written is at most the element that is
  // read.
  std::string OfVectors() const {
    std::string text =
        "  const int64 size = blockDim.x * blockDim.y * blockDim.z;\n"
        "  const int64 lane = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;\n"
        "  const int64 block = (int64)(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;\n"
        "  const int64 thread = block * size + lane, threads = (int64)gridDim.x * gridDim.y * gridDim.z * size;\n"
        "  if (true";
    text += ForEach([](size_t, const std::string& a) { return " && IsFlat(a" + a + ")"; });
    text +=
        ") {\n"
        "    const int64 n = range.depth * range.height * range.width, vectors = n / kVector;\n";
    if (twice_) {
      text +=
          "    const bool few = vectors <= threads;\n"
          "    const int64 apart = few ? vectors : size;\n"
          "#pragma unroll 1\n"
          "    for (int64 v = few ? thread : 2 * block * size + lane; v < vectors; v += 2 * threads) {\n"
          "      const bool two = v + apart < vectors;\n";
      text += Vector("x", "v", "true") + Vector("y", "(v + apart)", "two") +
              "      asm volatile(\"\" ::: \"memory\");\n" + Computed("x", "v") + "      if (!two) continue;\n" +
              Computed("y", "(v + apart)");
    } else {
      text += "#pragma unroll 1\n    for (int64 v = thread; v < vectors; v += threads) {\n";
      text += Vector("x", "v", "true") + Computed("x", "v");
    }
    text += "    }\n#pragma unroll 1\n    for (int64 i = vectors * kVector + thread; i < n; i += threads) Element(";
    text += ForEach([](size_t at, const std::string& a) { return (at > 0 ? ", a" : "a") + a + ".data[i]"; });
    return text + Params() + ");\n    return;\n  }\n";
  }
  // Packs, with what is read in them if `when` holds.
  std::string Vector(const std::string& set, const std::string& at, const std::string& when) const {
    return ForEach([&](size_t access, const std::string& a) {
      std::string text = std::string("      Pack<") + NameOf(f_.accesses[access]) + "> " + set + a + ";";
      if (f_.ModeOf(access) != AccessMode::kWrite) {
        text.append(" if (").append(when).append(") ").append(set).append(a);
        text.append(".Load(a").append(a).append(".data + ").append(at).append(" * kVector);");
      }
      return text + "\n";
    });
  }
  std::string Computed(const std::string& set, const std::string& at) const {
    std::string text = "#pragma unroll\n      for (int k = 0; k < kVector; ++k) Element(";
    text += ForEach([&](size_t access, const std::string& a) { return (access > 0 ? ", " : "") + set + a + ".e[k]"; });
    text += Params() + ");\n";
    for (size_t w = 0; w < f_.written.size(); ++w) {
      const std::string a = std::to_string(w);
      text.append("      ").append(set).append(a).append(".Store(a").append(a).append(".data + ").append(at);
      text.append(" * kVector);\n");
    }
    return text;
  }

  std::string OfRows() const {
    std::string text =
        "  for (int64 z = blockIdx.z * blockDim.z + threadIdx.z; z < range.depth; z += gridDim.z * blockDim.z) {\n"
        "    for (int64 y = blockIdx.y * blockDim.y + threadIdx.y; y < range.height; y += gridDim.y * blockDim.y) {\n"
        "#pragma unroll 1\n"
        "      for (int64 x = (int64)blockIdx.x * blockDim.x + threadIdx.x; x < range.width;\n"
        "           x += (int64)gridDim.x * blockDim.x) {\n        Element(";
    text += ForEach([](size_t at, const std::string& a) {
      return (at > 0 ? ", a" : "a") + a + ".data[z * a" + a + ".slice + y * a" + a + ".pitch + x]";
    });
    return text + Params() + ");\n      }\n    }\n  }\n";
  }

  const Formula& f_;
  int vector_ = 1;  // elements
  bool twice_ = false;
};

}  // namespace

std::shared_ptr<const Source::Parts> SourceOf(const detail::Formula& formula) {
  // Each operation is rounded by itself, as on the host.
  SourceOptions options{.options = {"--std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"}};
  options.file = "map.cu";
  return std::make_shared<const Source::Parts>(Source::Parts{Text(formula).Write(), "map", std::move(options)});
}

}  // namespace penstock::graph
