// SPDX-License-Identifier: MIT
#include "io/tls.hpp"

#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace stn {
namespace {

bool numeric(const std::string& name) {
    in6_addr any{};
    return ::inet_pton(AF_INET, name.c_str(), &any) == 1 || ::inet_pton(AF_INET6, name.c_str(), &any) == 1;
}

error unusable(const std::string& option, const std::string& file) {
    const unsigned long code = ERR_peek_last_error();
    const char* const why = code == 0 ? nullptr : ERR_reason_error_string(code);
    ERR_clear_error();
    return fail(status::invalid_argument, "\"" + option + "\": \"" + file + "\" cannot be used" +
                                              (why == nullptr ? "" : std::string(": ") + why));
}

// Called when the server wants a certificate and none was given. What it leaves is not used for anything else.
int note_certificate_missed(SSL* session, X509**, EVP_PKEY**) {
    static char note;
    SSL_set_app_data(session, &note);
    return 0; // without one
}

} // namespace

void tls_context::free_context(ssl_ctx_st* c) noexcept {
    SSL_CTX_free(c);
}

result<std::shared_ptr<tls_context>> tls_context::make(const tls_options& options) {
    if (options.cert_file.empty() != options.key_file.empty()) {
        return fail(status::invalid_argument, "\"tls_cert_file\" and \"tls_key_file\" come together");
    }
    SSL_CTX* const c = SSL_CTX_new(TLS_client_method());
    if (c == nullptr) return fail(status::no_memory, "no memory for TLS");
    auto made = std::make_shared<tls_context>(c);
    SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
    // hiredis' buffer moves between two tries of one write
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_client_cert_cb(c, &note_certificate_missed);
    ERR_clear_error();
    if (options.ca_file.empty()) {
        SSL_CTX_set_default_verify_paths(c);
    } else if (SSL_CTX_load_verify_locations(c, options.ca_file.c_str(), nullptr) != 1) {
        return unusable("tls_ca_file", options.ca_file);
    }
    if (!options.cert_file.empty()) {
        if (SSL_CTX_use_certificate_chain_file(c, options.cert_file.c_str()) != 1) {
            return unusable("tls_cert_file", options.cert_file);
        }
        if (SSL_CTX_use_PrivateKey_file(c, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
            SSL_CTX_check_private_key(c) != 1) {
            return unusable("tls_key_file", options.key_file);
        }
    }
    return made;
}

ssl_st* tls_context::session(const std::string& name) const {
    SSL* const s = SSL_new(context_.get());
    if (s == nullptr) return nullptr;
    bool named = false;
    if (numeric(name)) {
        named = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(s), name.c_str()) == 1;
    } else {
        // A common name is no host name, since there are better places for one.
        SSL_set_hostflags(s, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
        named = SSL_set_tlsext_host_name(s, name.c_str()) == 1 && SSL_set1_host(s, name.c_str()) == 1;
    }
    if (named) return s;
    SSL_free(s);
    return nullptr;
}

bool certificate_missed(const ssl_st* session) {
    return session != nullptr && SSL_get_app_data(session) != nullptr;
}

std::string tls_fault(const ssl_st* session, const std::string& name, const std::string& said) {
    const long found = session == nullptr ? X509_V_OK : SSL_get_verify_result(session);
    switch (found) {
    case X509_V_OK: break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return "the server's certificate is not for \"" + name + "\"";
    case X509_V_ERR_CERT_HAS_EXPIRED: return "the server's certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID: return "the server's certificate is not valid yet";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: return "the server's certificate is self-signed, and not trusted";
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return "the server's certificate comes from an unknown authority: see \"tls_ca_file\"";
    default: return std::string("the server's certificate is refused: ") + X509_verify_cert_error_string(found);
    }
    if (said.find("unexpected eof") != std::string::npos) return "the server closed the connection";
    if (said.find("wrong version number") != std::string::npos) return "the server does not speak TLS on this port";
    if (said.find("certificate required") != std::string::npos) {
        return "the server asks for a certificate of ours: see \"tls_cert_file\"";
    }
    return "TLS failed: " + said;
}

} // namespace stn
