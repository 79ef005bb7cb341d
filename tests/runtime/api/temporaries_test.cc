// What temporaries may be given for, and what they give away: most of it is decided by the compiler.
#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/penstock.h"

namespace penstock::temporaries_test {
namespace {

using KeepAlive = std::shared_ptr<const void>;

template <class To, class... M>
concept CanSet = requires(To&& to, BufferHandle<int> buffer, M&&... memory) {
  std::forward<To>(to).Set(buffer, std::forward<M>(memory)...);
};

// A view whose elements go with it, as far as the compiler knows.
struct OwnView : std::ranges::view_base {
  int* begin() const { return nullptr; }
  int* end() const { return nullptr; }
};

template <class To>
constexpr bool TakesWhatOutlivesTheCall() {
  return CanSet<To, int&> && CanSet<To, const int&> && CanSet<To, std::vector<int>&> &&
         CanSet<To, const std::vector<int>&> && CanSet<To, std::array<int, 2>&> && CanSet<To, int(&)[2]> &&
         CanSet<To, std::span<int>> && CanSet<To, std::span<const int>> && CanSet<To, HostBuffer<int>> &&
         CanSet<To, HostBuffer<int>&> && CanSet<To, const HostBuffer<int>&> && CanSet<To, DeviceBuffer<int>> &&
         CanSet<To, const DeviceBuffer<int>&> && CanSet<To, std::vector<int>&, KeepAlive> &&
         CanSet<To, std::span<int>, KeepAlive> && CanSet<To, std::span<int>, std::shared_ptr<int>> &&
         CanSet<To, OwnView&> && CanSet<To, OwnView, KeepAlive>;
}
template <class To>
constexpr bool TakesWhatIsGoneBeforeTheLaunch() {
  return CanSet<To, int> || CanSet<To, const int> || CanSet<To, float&> || CanSet<To, volatile int&> ||
         CanSet<To, std::vector<int>> || CanSet<To, const std::vector<int>> || CanSet<To, std::array<int, 2>> ||
         CanSet<To, OwnView> || CanSet<To, std::vector<int>, KeepAlive> || CanSet<To, std::vector<float>&>;
}

TEST(Temporaries, AreBoundOnlyWhereTheirElementsOutliveThem) {
  static_assert(TakesWhatOutlivesTheCall<Bindings&>() && TakesWhatOutlivesTheCall<Bindings>());
  static_assert(TakesWhatOutlivesTheCall<AnyItem&>() && TakesWhatOutlivesTheCall<Item<int>>());
  static_assert(!TakesWhatIsGoneBeforeTheLaunch<Bindings&>() && !TakesWhatIsGoneBeforeTheLaunch<Bindings>());
  static_assert(!TakesWhatIsGoneBeforeTheLaunch<AnyItem&>() && !TakesWhatIsGoneBeforeTheLaunch<Item<int>>());
}

// What a setter of `To` returns.
template <class To>
using Return = decltype(std::declval<To>().Set(ParamHandle<int>(), 1));
template <class To>
using ReturnOfBuffer = decltype(std::declval<To>().Set(BufferHandle<int>(), std::span<int>()));

template <class To, class... F>
concept StagesByValue = requires(To&& to, Executable e, std::vector<Link> links, F... f) {
  { std::forward<To>(to).Run("n", e, f...) } -> std::same_as<std::remove_reference_t<To>>;
  { std::forward<To>(to).Then("n", e, links, f...) } -> std::same_as<std::remove_reference_t<To>>;
};

TEST(Temporaries, ReturnThemselvesByValueFromSetters) {
  using B = Bindings;
  static_assert(std::same_as<Return<B&>, B&> && std::same_as<Return<B>, B>);
  static_assert(std::same_as<ReturnOfBuffer<B&>, B&> && std::same_as<ReturnOfBuffer<B>, B>);
  static_assert(std::same_as<decltype(std::declval<B>().SetKey(Key(1))), B>);
  static_assert(std::same_as<decltype(std::declval<B>().On(NativeStream())), B>);
  static_assert(std::same_as<decltype(std::declval<B>().After(BufferHandle<int>(), std::declval<penstock::Run>())), B>);
  static_assert(std::same_as<decltype(std::declval<B>().After(BufferHandle<int>(), NativeEvent())), B>);
  static_assert(std::same_as<decltype(std::declval<B>().After(BufferHandle<int>(), {penstock::Run()})), B>);
  static_assert(std::same_as<decltype(std::declval<B>().After(BufferHandle<int>(), std::span<penstock::Run>())), B>);
  static_assert(std::same_as<Return<AnyItem&>, AnyItem&> && std::same_as<Return<Item<int>>, AnyItem>);

  using S = Stages<int>;
  const auto host = [](int&) {};
  using F = decltype(host);
  static_assert(std::same_as<decltype(std::declval<S&>().Host("n", host)), S&>);
  static_assert(std::same_as<decltype(std::declval<S>().Host("n", host)), S>);
  static_assert(StagesByValue<S> && StagesByValue<S, F> && !StagesByValue<S&> && !StagesByValue<S&, F>);

  // A NodeRef is a handle: by value from any.
  using N = NodeRef;
  static_assert(std::same_as<decltype(std::declval<N>().On(1)), N> &&
                std::same_as<decltype(std::declval<N&>().On(1)), N>);
  static_assert(std::same_as<decltype(std::declval<N>().After(std::declval<N>())), N>);
  static_assert(std::same_as<decltype(std::declval<N>().Priority(1)), N>);
  static_assert(std::same_as<decltype(std::declval<N>().Concurrency(1)), N>);
  static_assert(std::same_as<decltype(std::declval<N>().Infallible()), N>);
  static_assert(std::same_as<decltype(std::declval<N>().Inline()), N>);
  static_assert(std::same_as<decltype(std::declval<N>().InPlace(BufferHandle<int>(), BufferHandle<int>())), N>);
  using T = FallbackNode<int>;
  static_assert(std::same_as<decltype(std::declval<T>().HostFallback([](int) {})), T>);
}

template <class Of>
concept GivesSpan = requires(Of&& of) { std::forward<Of>(of).span(BufferHandle<int>()); };
template <class Of>
concept GivesOwnSpan =
    requires(Of&& of) { std::forward<Of>(of).span(); } || requires(Of&& of) { std::forward<Of>(of).first(1); };
template <class Of>
concept GivesName = requires(Of&& of) { std::forward<Of>(of).name(); };
template <class Of>
concept GivesModel = requires(Of&& of) { std::forward<Of>(of).model(); };
template <class Of>
concept GivesGraph = requires(Of&& of) { std::forward<Of>(of).native_graph(); };

TEST(Temporaries, GiveAwayNothingThatGoesWithThem) {
  static_assert(GivesSpan<const Lease&> && !GivesSpan<Lease>);
  static_assert(GivesSpan<const Item<int>&> && !GivesSpan<Item<int>>);
  static_assert(GivesOwnSpan<const HostBuffer<int>&> && !GivesOwnSpan<HostBuffer<int>>);
  static_assert(GivesName<const State<int>&> && !GivesName<State<int>>);
  static_assert(GivesName<const ReplicatedState<int>&> && !GivesName<ReplicatedState<int>>);
  static_assert(GivesModel<const Graph&> && !GivesModel<Graph>);
  static_assert(GivesGraph<const ExportedGraph&> && !GivesGraph<ExportedGraph>);

  static_assert(std::same_as<decltype(std::declval<Item<std::string>>().value()), std::string>);
  static_assert(std::same_as<decltype(std::declval<Item<std::string>&>().value()), std::string&>);
  static_assert(!std::is_reference_v<decltype(std::declval<AnyItem>().status())>);
  static_assert(!std::is_reference_v<decltype(std::declval<State<int>>().record())>);
  static_assert(!std::is_reference_v<decltype(std::declval<ReplicatedState<int>>().record())>);
  static_assert(!std::is_reference_v<decltype(std::declval<HostBuffer<int>>().block())>);
  static_assert(!std::is_reference_v<decltype(std::declval<DeviceBuffer<int>>().block())>);
  static_assert(!std::is_reference_v<decltype(std::declval<Runtime>().devices())>);
}

TEST(Temporaries, KeepAllThatWasSetOnThem) {
  absl::StatusOr<Runtime> runtime = Runtime::Create({.devices = "host:1"});
  ASSERT_TRUE(runtime.ok());
  Graph g("g");
  auto x = g.Input<int>("x", 4), y = g.Output<int>("y", 4), w = g.Input<int>("w", 4, kDevice);
  auto add = g.Param<int>("add");
  g.ParallelFor(
      "sum", 4, [](int64_t i, const int* a, const int* b, int* to, int c) { to[i] = a[i] + 0 * b[i] + c; }, Read(x),
      Read(w), Write(y), add);
  absl::StatusOr<Executable> exec = runtime->Compile(g);
  ASSERT_TRUE(exec.ok()) << exec.status();
  const std::vector<int> from{1, 2, 3, 4};
  std::vector<int> to(4);
  auto&& io =
      exec->bindings().Set(x, from).Set(y, to).Set(w, *runtime->MakeDeviceBuffer<int>(4)).Set(add, 5).SetKey(Key(1));
  absl::StatusOr<penstock::Run> run = exec->Launch(io);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->Wait(), absl::OkStatus());
  EXPECT_EQ(to, (std::vector<int>{6, 7, 8, 9}));
}

}  // namespace
}  // namespace penstock::temporaries_test
