// SPDX-License-Identifier: MIT
//
// The certificates of tests/support, as a server shows them and OpenSSL judges them: each wrong one is
// wrong in the one way it is made for.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "support/live_server.hpp"

using namespace stn::test;

namespace {

struct free_ssl {
    void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
    void operator()(BIO* p) const { BIO_free_all(p); }
};

struct visit {
    bool answered = false;
    long verdict = X509_V_ERR_UNSPECIFIED;
};

// Connects, judges, and asks for PONG; `shows` is the client's own certificate.
visit go(std::uint16_t port, const std::string& ca, const certificate_files* shows = nullptr) {
    const std::unique_ptr<SSL_CTX, free_ssl> context(SSL_CTX_new(TLS_client_method()));
    REQUIRE(SSL_CTX_load_verify_locations(context.get(), ca.c_str(), nullptr) == 1);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
    if (shows != nullptr) {
        REQUIRE(SSL_CTX_use_certificate_file(context.get(), shows->certificate.c_str(), SSL_FILETYPE_PEM) == 1);
        REQUIRE(SSL_CTX_use_PrivateKey_file(context.get(), shows->key.c_str(), SSL_FILETYPE_PEM) == 1);
    }
    const std::unique_ptr<BIO, free_ssl> bio(BIO_new_ssl_connect(context.get()));
    SSL* ssl = nullptr;
    BIO_get_ssl(bio.get(), &ssl);
    SSL_set1_host(ssl, "localhost");
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    BIO_set_conn_hostname(bio.get(), ("127.0.0.1:" + std::to_string(port)).c_str());
    visit out;
    if (BIO_do_connect(bio.get()) != 1) return out;
    out.verdict = SSL_get_verify_result(ssl);
    char answer[7] = {};
    out.answered = BIO_write(bio.get(), "PING\r\n", 6) == 6 && BIO_read(bio.get(), answer, 7) == 7 &&
                   std::string(answer, 7) == "+PONG\r\n";
    return out;
}

} // namespace

TEST_CASE("each certificate is right, or wrong in its own way") {
    const certificates made;
    struct row {
        certificate_files shown;
        long verdict;
    };
    const row rows[] = {
        {made.server(), X509_V_OK},
        {made.expired(), X509_V_ERR_CERT_HAS_EXPIRED},
        {made.not_yet(), X509_V_ERR_CERT_NOT_YET_VALID},
        {made.wrong_name(), X509_V_ERR_HOSTNAME_MISMATCH},
        {made.only_common_name(), X509_V_ERR_HOSTNAME_MISMATCH},
        {made.self_signed(), X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT},
        {made.of_unknown_ca(), X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE},
    };
    for (const row& r : rows) {
        CAPTURE(r.shown.certificate);
        const live_server server(server_kind::redis, {.tls = live_tls{r.shown}});
        const visit seen = go(server.tls_port(), made.ca());
        CHECK(seen.answered);
        CHECK(std::string(X509_verify_cert_error_string(seen.verdict)) == X509_verify_cert_error_string(r.verdict));
    }
}

TEST_CASE("valkey talks TLS too") {
    const certificates made;
    const live_server server(server_kind::valkey, {.tls = live_tls{made.server()}});
    const visit seen = go(server.tls_port(), made.ca());
    CHECK(seen.answered);
    CHECK(seen.verdict == X509_V_OK);
}

TEST_CASE("a server that wants certificates lets in who has the right one") {
    const certificates made;
    const live_server server(server_kind::redis, {.tls = live_tls{made.server(), made.ca()}});
    const certificate_files mine = made.client();
    const certificate_files strange = made.of_unknown_ca();
    CHECK(go(server.tls_port(), made.ca(), &mine).answered);
    CHECK_FALSE(go(server.tls_port(), made.ca(), &strange).answered);
    CHECK_FALSE(go(server.tls_port(), made.ca()).answered);
}
