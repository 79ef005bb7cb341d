// What a key tells apart, and which sources may read files that it does not know.
#include "src/jit/source_key.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/environment.h"

namespace penstock::jit::source_key_test {
namespace {

Source::Parts Parts() {
  return {"#include \"a.h\"\nx", "k", {.options = {"-DA=1"}, .headers = {{"a.h", "int a;"}}, .file = "s.cu"}};
}

Digest KeyFor(const Source::Parts& parts, const std::string& architecture = "sm_90",
              const std::string& version = "13.0") {
  return KeyOf({&parts, architecture}, version);
}

TEST(SourceKey, IsTheSameForTheSame) {
  const EnvironmentScope none("NVRTC_APPEND_FLAGS", "");
  EXPECT_EQ(KeyFor(Parts()), KeyFor(Parts()));
}

TEST(SourceKey, IsAnotherOneForEachThingThatTheCompilerSees) {
  const EnvironmentScope none("NVRTC_APPEND_FLAGS", "");
  using Change = std::function<void(Source::Parts&)>;
  const std::vector<Change> changes{
      [](Source::Parts&) {},
      [](Source::Parts& p) { p.text += " "; },
      [](Source::Parts& p) { p.kernel = "k2"; },
      [](Source::Parts& p) { std::swap(p.text, p.kernel); },
      [](Source::Parts& p) { p.options.options = {}; },
      [](Source::Parts& p) { p.options.options = {"-DA=2"}; },
      [](Source::Parts& p) { p.options.options = {"-DA=1", "-DB"}; },
      [](Source::Parts& p) { p.options.options = {"-DB", "-DA=1"}; },
      [](Source::Parts& p) { p.options.headers = {}; },
      [](Source::Parts& p) { p.options.headers[0].name = "b.h"; },
      [](Source::Parts& p) { p.options.headers[0].text = "int b;"; },
      [](Source::Parts& p) { p.options.headers.push_back({"b.h", ""}); },
      [](Source::Parts& p) { p.options.file = "t.cu"; },
  };
  std::set<Digest> keys;
  for (const Change& change : changes) {
    Source::Parts parts = Parts();
    change(parts);
    keys.insert(KeyFor(parts));
  }
  keys.insert(KeyFor(Parts(), "sm_100"));
  keys.insert(KeyFor(Parts(), "sm_90", "13.1"));
  const EnvironmentScope some("NVRTC_APPEND_FLAGS", "-DC");
  keys.insert(KeyFor(Parts()));
  EXPECT_EQ(keys.size(), changes.size() + 3);
}

TEST(SourceKey, AddsTheArchitectureUnlessTheSourceNamesOne) {
  Source::Parts parts = Parts();
  EXPECT_EQ(OptionsOf({&parts, "sm_90"}),
            (std::vector<std::string>{"--no-source-include", "--gpu-architecture=sm_90", "-DA=1"}));
  EXPECT_EQ(ArchitectureIn(OptionsOf({&parts, "sm_90"})), "sm_90");
  for (const std::string name : {"-arch", "--gpu-architecture"}) {
    parts.options.options = {"-DA=1", name + "=sm_90a"};
    EXPECT_EQ(OptionsOf({&parts, "sm_90"}),
              (std::vector<std::string>{"--no-source-include", "-DA=1", name + "=sm_90a"}));
    EXPECT_EQ(ArchitectureIn(OptionsOf({&parts, "sm_90"})), "sm_90a");
  }
  parts.options.options = {" -arch=sm_90a"};
  EXPECT_EQ(OptionsOf({&parts, "sm_90"}), (std::vector<std::string>{"--no-source-include", " -arch=sm_90a"}));
  EXPECT_EQ(ArchitectureIn(OptionsOf({&parts, "sm_90"})), "sm_90a");
}

bool Tells(const std::string& text, std::vector<std::string> options = {}, std::vector<SourceHeader> headers = {}) {
  return KeyTellsAll({text, "k", {.options = std::move(options), .headers = std::move(headers)}});
}

TEST(SourceKey, TellsAllOfASourceThatReadsNoFiles) {
  const EnvironmentScope none("NVRTC_APPEND_FLAGS", "");
  const std::vector<SourceHeader> headers{{"a.h", "#pragma once\n#define B(x) #x\n"}, {"b/c.h", " # include <a.h>"}};
  EXPECT_TRUE(Tells("int x;"));
  EXPECT_TRUE(Tells("#define P(a, b) a##b\n#if X\n#endif\nint include;\n#pragma unroll\n#includes"));
  EXPECT_TRUE(Tells("#define LONG a \\\n  b\nint x = '\\n'; // \\"));
  EXPECT_TRUE(Tells("#include \"a.h\"\n  #  include <b/c.h>  // both\n", {"-DA", "--std=c++20"}, headers));
}

TEST(SourceKey, DoesNotTellAllOfASourceThatMayReadFiles) {
  const EnvironmentScope none("NVRTC_APPEND_FLAGS", "");
  const std::vector<SourceHeader> headers{{"a.h", "int a;"}};
  for (const char* text : {"#include <cuda_fp16.h>",
                           "#include \"/tmp/x.h\"",
                           "int x;\n #\tinclude \"b.h\"",
                           "#include NAME",
                           "#include",
                           "#include \"a.h\n#define Q \"",
                           "#/**/include <b.h>",
                           "#inc\\\nlude <b.h>",
                           "#\\\ninclude <b.h>",
                           "/* # */ #include <b.h>",
                           "%:include <b.h>",
                           "?\?=include <b.h>",
                           "#if __has_include(<b.h>)\n#endif",
                           "#include_next <a.h>",
                           "#embed \"x\"",
                           "#include/**/<b.h>",
                           "#\finclude <b.h>",
                           "#\vinclude <b.h>",
                           "#\rinclude <b.h>",
                           "#inc?\?/\nlude <b.h>",
                           "#inc\\\r\nlude <b.h>",
                           "#inc\\\rlude <b.h>",
                           "#inc\\ \nlude <b.h>",
                           "#if __has_\\\ninclude(<b.h>)\n#endif",
                           "#if __has_\\\nembed(<b.h>)\n#endif",
                           "%\\\n:include <b.h>",
                           "#include\v<b.h>",
                           "int a = __LINE__; auto b = __DATE__;",
                           "auto b = __TIME__;",
                           "auto b = __TIMESTAMP__;",
                           "auto b = __TI\\\nME__;"}) {
    EXPECT_FALSE(Tells(text, {}, headers)) << text;
  }
  EXPECT_FALSE(Tells("#include <a.h>", {}, {{"a.h", "#include <b.h>"}}));
  EXPECT_FALSE(Tells("#include NAME", {"-DNAME=<b.h>"}, {{"", "int a;"}})) << "a name that only a macro gives";
  for (const char* option : {" -I/x", "\t--pre-include=/x", "-DA=__has_include(<b.h>)", "-DA=__TIME__", "-I/x", "-I",
                             "--include-path=/x", "-include=/x", "--pre-include=/x", "--pch"}) {
    EXPECT_FALSE(Tells("int x;", {option})) << option;
  }
  const EnvironmentScope some("NVRTC_APPEND_FLAGS", "-I/x");
  EXPECT_FALSE(Tells("int x;"));
}

}  // namespace
}  // namespace penstock::jit::source_key_test
