// SPDX-License-Identifier: MIT
//
// rediss://: whom we believe, whom not and in which words, and that an encrypted connection is as good as another.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "app.hpp"
#include "fake_server.hpp"
#include "process.hpp"
#include "support/certificates.hpp"
#include "support/proxy.hpp"

using namespace stn;
using namespace stn::test;
using namespace std::chrono_literals;

namespace {

constexpr auto hang = 5s;

const certificates& papers() {
    static const certificates made;
    return made;
}

std::string trusting(const std::string& ca, const std::string& more = "") {
    return R"({"connect_timeout": "1s", "tls_ca_file": ")" + ca + "\"" + more + "}";
}
std::string trusting() {
    return trusting(papers().ca());
}

std::string at(const std::string& host, std::uint16_t port) {
    return "rediss://" + host + ":" + std::to_string(port);
}

// Why a client does not become ready; its callers load all the same.
answer refusal_of(const std::string& url, const std::string& options) {
    app shop(url, options);
    const answer why = shop.ready(400);
    const answer a = shop.load("k", "v");
    CHECK(a.bytes == "v");
    CHECK(a.took < hang);
    CHECK(shop.notices(STN_NOTICE_CONNECTION).size() == 1);
    return why;
}

struct tls_server : live_server {
    explicit tls_server(const certificate_files& shown, server_kind kind = server_kind::redis,
                        const std::string& client_ca = {})
        : live_server(kind, {.tls = live_tls{shown, client_ca}}) {}
};

} // namespace

TEST_CASE("TLS: the right name and the right address are believed, and all works as without") {
    on_each([](server_kind kind) {
        tls_server server(papers().server(), kind);
        for (const std::string host : {"localhost", "127.0.0.1"}) {
            CAPTURE(host);
            app shop(at(host, server.tls_port()), trusting());
            REQUIRE(shop.ready().status == STN_OK);
            CHECK(shop.load("k", "v").bytes == "v");
            CHECK(eventually([&] { return shop.get("k").bytes == "v"; }));
            CHECK(shop.put("p", "v").status == STN_OK);
            CHECK(shop.invalidate("k").status == STN_OK);
            CHECK(shop.get("k").status == STN_ABSENT);
        }
        CHECK(left_in(server).without_ttl == 0);
    });
}

TEST_CASE("TLS: each wrong certificate is refused, in words of its own") {
    struct row {
        const char* name;
        certificate_files shown;
        const char* told;
    };
    const row rows[] = {
        {"wrong name", papers().wrong_name(), "the server's certificate is not for \"localhost\""},
        {"name in the old place only", papers().only_common_name(), "is not for \"localhost\""},
        {"expired", papers().expired(), "the server's certificate has expired"},
        {"not yet", papers().not_yet(), "the server's certificate is not valid yet"},
        {"self-signed", papers().self_signed(), "the server's certificate is self-signed, and not trusted"},
        {"unknown", papers().of_unknown_ca(), "comes from an unknown authority: see \"tls_ca_file\""},
    };
    for (const row& r : rows) {
        CAPTURE(r.name);
        tls_server server(r.shown);
        const answer why = refusal_of(server.tls_url(), trusting());
        CHECK(why.status == STN_UNAVAILABLE);
        INFO(why.message);
        CHECK(why.message.find(r.told) != std::string::npos);
        CHECK(server.ask({"DBSIZE"}).integer == 0);
        CHECK(calls_of(server, "hello") == 0); // not one word to somebody else
    }
}

TEST_CASE("TLS: an address that the certificate does not name is refused") {
    tls_server server(papers().wrong_name());
    const answer why = refusal_of(at("127.0.0.1", server.tls_port()), trusting());
    CHECK(why.message.find("is not for \"127.0.0.1\"") != std::string::npos);
}

TEST_CASE("TLS: without a CA of ours the system's are asked, who do not know the test's") {
    tls_server server(papers().server());
    const answer why = refusal_of(server.tls_url(), R"({"connect_timeout": "1s"})");
    CHECK(why.message.find("unknown authority") != std::string::npos);
}

TEST_CASE("TLS: tls_server_name is whom the certificate has to be for") {
    tls_server elsewhere(papers().wrong_name());
    app shop(at("127.0.0.1", elsewhere.tls_port()),
             trusting(papers().ca(), R"(, "tls_server_name": "elsewhere.example")"));
    CHECK(shop.ready().status == STN_OK);
    CHECK(shop.load("k", "v").bytes == "v");
    tls_server here(papers().server());
    const answer why =
        refusal_of(here.tls_url(), trusting(papers().ca(), R"(, "tls_server_name": "elsewhere.example")"));
    CHECK(why.message.find("is not for \"elsewhere.example\"") != std::string::npos);
}

TEST_CASE("TLS: a server that speaks none on that port is told so") {
    const std::string options = R"({"connect_timeout": "200ms", "tls_ca_file": ")" + papers().ca() + "\"}";
    live_server plain(server_kind::redis); // which takes a TLS hello for the beginning of a line
    const answer silent = refusal_of(at("localhost", plain.port()), options);
    CHECK(silent.status == STN_UNAVAILABLE);
    CHECK(silent.message.find("did not answer to TLS in time: perhaps it speaks none on this port") !=
          std::string::npos);
    const fake_server chatty([](const fake_server::words&) { return ""; }, "220 what can I do for you?\r\n");
    const answer talks = refusal_of(at("localhost", chatty.port()), options);
    CHECK(talks.status == STN_UNAVAILABLE);
    INFO(talks.message);
    CHECK(talks.message.find("the server does not speak TLS on this port") != std::string::npos);
}

TEST_CASE("TLS on a plain URL: a server that speaks TLS only does not hold anybody up") {
    tls_server server(papers().server());
    const answer why =
        refusal_of("redis://localhost:" + std::to_string(server.tls_port()), R"({"connect_timeout": "300ms"})");
    CHECK((why.status == STN_UNAVAILABLE || why.status == STN_NOT_REDIS));
}

TEST_CASE("TLS: a certificate of ours is shown where it is asked for, and missed where there is none") {
    on_each([](server_kind kind) {
        tls_server server(papers().server(), kind, papers().ca());
        const certificate_files own = papers().client();
        app shop(server.tls_url(), trusting(papers().ca(), R"(, "tls_cert_file": ")" + own.certificate +
                                                               R"(", "tls_key_file": ")" + own.key + "\""));
        CHECK(shop.ready().status == STN_OK);
        CHECK(shop.load("k", "v").bytes == "v");
        CHECK(eventually([&] { return shop.get("k").bytes == "v"; }));
        const answer why = refusal_of(server.tls_url(), trusting());
        CHECK(why.status == STN_UNAVAILABLE);
        INFO(why.message);
        CHECK(why.message.find("asks for a certificate of ours: see \"tls_cert_file\"") != std::string::npos);
    });
}

TEST_CASE("TLS: files that cannot be used are refused when the client is opened, each by its option") {
    const certificate_files own = papers().client();
    const certificate_files other = papers().server();
    const scratch_folder folder;
    const std::string no_pem = folder.file("no.pem");
    std::ofstream(no_pem) << "this is no certificate\n";
    const auto option = [](const std::string& name, const std::string& value) {
        return "\"" + name + "\": \"" + value + "\"";
    };
    const auto cert = [&](const std::string& c, const std::string& k) {
        return "{" + option("tls_cert_file", c) + ", " + option("tls_key_file", k) + "}";
    };
    struct row {
        std::string options;
        const char* named;
    };
    const row rows[] = {
        {"{" + option("tls_ca_file", folder.file("none.pem")) + "}", "tls_ca_file"},
        {"{" + option("tls_ca_file", no_pem) + "}", "tls_ca_file"},
        {cert(folder.file("none.pem"), own.key), "tls_cert_file"},
        {cert(no_pem, own.key), "tls_cert_file"},
        {cert(own.certificate, folder.file("none.key")), "tls_key_file"},
        {cert(own.certificate, other.key), "tls_key_file"}, // of another certificate
        {"{" + option("tls_cert_file", own.certificate) + "}", "tls_key_file"},
        {"{" + option("tls_key_file", own.key) + "}", "tls_cert_file"},
    };
    for (const row& r : rows) {
        CAPTURE(r.options);
        const answer no = refused_open("rediss://localhost:1", r.options);
        CHECK(no.status == STN_INVALID_ARGUMENT);
        CHECK(no.message.find(r.named) != std::string::npos);
    }
    const answer plain = refused_open("redis://localhost:1", "{" + option("tls_ca_file", papers().ca()) + "}");
    CHECK(plain.status == STN_INVALID_ARGUMENT);
    CHECK(plain.message.find("tls_ca_file") != std::string::npos);
}

TEST_CASE("TLS under load: 1,000 callers at once, and large values, both ways") {
    on_each([](server_kind kind) {
        tls_server server(papers().server(), kind);
        app shop(server.tls_url(),
                 trusting(papers().ca(), R"(, "command_timeout": "10s")")); // this machine may be slow
        REQUIRE(shop.ready().status == STN_OK);
        crowd all(shop);
        for (int i = 0; i < 1'000; ++i) all.fetch("k" + std::to_string(i % 250));
        REQUIRE(all.serve(20s));
        for (const answer& a : all.answers) CHECK(a.status == STN_OK);
        CHECK(all.values.size() == 250);
        std::string large(std::size_t{4} << 20, 'x');
        for (std::size_t i = 0; i < large.size(); i += 1'000) large[i] = static_cast<char>('a' + i / 1'000 % 26);
        CHECK(shop.put("large", large).status == STN_OK);
        const answer back = shop.get("large");
        CHECK((back.bytes == large));
        CHECK(left_in(server).without_ttl == 0);
    });
}

TEST_CASE("TLS on a line that breaks: cut, trickling, silent") {
    tls_server server(papers().server());
    proxy net(server.tls_port());
    net.trickle(way::to_client);
    net.trickle(way::to_server);
    app shop(net.url("rediss"), R"({"connect_timeout": "5s", "tls_ca_file": ")" + papers().ca() + "\"}");
    REQUIRE(shop.ready(10'000).status == STN_OK);
    CHECK(shop.load("k", "v").bytes == "v");
    net.pass();
    CHECK(eventually([&] { return shop.get("k").bytes == "v"; }));
    crowd all(shop);
    net.hold(way::to_client);
    for (int i = 0; i < 64; ++i) all.fetch("k" + std::to_string(i));
    std::this_thread::sleep_for(20ms);
    net.cut();
    REQUIRE(all.serve());
    for (const answer& a : all.answers) CHECK(a.status == STN_OK);
    net.pass();
    REQUIRE(shop.ready(10'000).status == STN_OK);
    CHECK(shop.load("again", "v").bytes == "v");
    CHECK(shop.notices(STN_NOTICE_CONNECTION, STN_UNAVAILABLE).size() == 1);
}

TEST_CASE("TLS to a server that accepts and says nothing: told, and nobody is held up") {
    tls_server server(papers().server());
    proxy net(server.tls_port());
    net.answer_nothing();
    const answer why =
        refusal_of(net.url("rediss"), R"({"connect_timeout": "300ms", "tls_ca_file": ")" + papers().ca() + "\"}");
    CHECK(why.message.find("did not answer to TLS in time") != std::string::npos);
}

TEST_CASE("TLS: a C program that does nothing about SIGPIPE survives") {
    on_each([](server_kind kind) {
        tls_server server(papers().server(), kind);
        proxy net(server.tls_port());
        process insists("insist", net.url("rediss"), "k", 1'500, trusting());
        process alone("alone", net.url("rediss"), "k", 1'500, trusting());
        REQUIRE(insists.line() == "loading");
        REQUIRE(alone.line() == "loading");
        for (int i = 0; i < 20; ++i) {
            net.cut(i % 2 == 0 ? ending::closed : ending::reset);
            std::this_thread::sleep_for(30ms);
        }
        server.restart();
        CHECK(insists.line() == "value good");
        CHECK(insists.end() == 0);
        CHECK(alone.line() == "value good");
        CHECK(alone.end() == 0);
    });
}
