// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace stn {

// Something to call, borrowed for the length of a call: std::function without memory of its own. Null by
// default.
template <class Signature> class function_ref;

template <class R, class... Args> class function_ref<R(Args...)> {
  public:
    function_ref() = default;
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, function_ref> && std::is_invocable_r_v<R, F&, Args...>)
    function_ref(F&& of) noexcept
        : of_(const_cast<void*>(static_cast<const void*>(std::addressof(of)))),
          call_([](void* p, Args... args) -> R {
              return (*static_cast<std::add_pointer_t<F>>(p))(std::forward<Args>(args)...);
          }) {}

    [[nodiscard]] explicit operator bool() const noexcept { return call_ != nullptr; }
    R operator()(Args... args) const { return call_(of_, std::forward<Args>(args)...); }

  private:
    void* of_ = nullptr;
    R (*call_)(void*, Args...) = nullptr;
};

} // namespace stn
