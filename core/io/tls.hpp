// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

struct ssl_st;
struct ssl_ctx_st;

namespace stn {

// Where trust comes from. An empty text is "not given".
struct tls_options {
    std::string ca_file;   // instead of the system's authorities
    std::string cert_file; // our own certificate, with
    std::string key_file;  // its key
};

// TLS 1.2 or newer, the server's chain and name always verified.
class tls_context {
  public:
    [[nodiscard]] static result<std::shared_ptr<tls_context>> make(const tls_options& options);

    explicit tls_context(ssl_ctx_st* owned) : context_(owned, &free_context) {}

    // One session, that insists on `name` (a host name or an address). Null for want of memory.
    [[nodiscard]] ssl_st* session(const std::string& name) const;

  private:
    static void free_context(ssl_ctx_st* c) noexcept;
    const std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> context_;
};

// The server has asked for a certificate of ours, and there is none.
[[nodiscard]] bool certificate_missed(const ssl_st* session);

// Why a session has failed, for a person: what the verification found, else what the library `said`.
[[nodiscard]] std::string tls_fault(const ssl_st* session, const std::string& name, const std::string& said);

} // namespace stn
