// SPDX-License-Identifier: MIT
#include "support/certificates.hpp"

#include <cstdio>
#include <memory>
#include <stdexcept>

#include <openssl/asn1.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace stn::test {

namespace {

template <auto free> struct freed_by {
    template <class T> void operator()(T* p) const { free(p); }
};
using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using x509_ptr = std::unique_ptr<X509, freed_by<X509_free>>;
using extension_ptr = std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>>;
using file_ptr = std::unique_ptr<std::FILE, freed_by<std::fclose>>;

constexpr long hour = 3'600;
constexpr long year = 365 * 24 * hour;
constexpr const char* names_here = "DNS:localhost,IP:127.0.0.1,IP:::1";

void need(bool good, const char* what) {
    if (!good) throw std::runtime_error(std::string("openssl cannot make a test's certificate: ") + what);
}

struct holder {
    x509_ptr certificate;
    key_ptr key;
};

struct wish {
    const char* common_name;
    const char* names; // subjectAltName; null: none
    bool authority = false;
    long from_s = -2 * hour; // from now
    long until_s = year;
};

void extend(X509* to, X509* issuer, int what, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
    const extension_ptr extension(X509V3_EXT_conf_nid(nullptr, &context, what, value));
    need(extension != nullptr && X509_add_ext(to, extension.get(), -1) == 1, value);
}

// `issuer` null: it signs itself.
holder make(const wish& w, const holder* issuer) {
    static long serial = 0;
    holder out{x509_ptr(X509_new()), key_ptr(EVP_EC_gen("P-256"))};
    X509* x = out.certificate.get();
    need(x != nullptr && out.key != nullptr, "key");
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x), w.from_s);
    X509_gmtime_adj(X509_getm_notAfter(x), w.until_s);
    X509_set_pubkey(x, out.key.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(w.common_name), -1, -1, 0);
    X509* signer = issuer == nullptr ? x : issuer->certificate.get();
    X509_set_issuer_name(x, X509_get_subject_name(signer));
    extend(x, signer, NID_basic_constraints, w.authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (w.authority) extend(x, signer, NID_key_usage, "critical,keyCertSign,cRLSign");
    extend(x, signer, NID_subject_key_identifier, "hash");
    if (issuer != nullptr) extend(x, signer, NID_authority_key_identifier, "keyid:always");
    if (w.names != nullptr) extend(x, signer, NID_subject_alt_name, w.names);
    need(X509_sign(x, issuer == nullptr ? out.key.get() : issuer->key.get(), EVP_sha256()) != 0, "signature");
    return out;
}

file_ptr create(const std::string& path) {
    file_ptr file(std::fopen(path.c_str(), "we"));
    need(file != nullptr, path.c_str());
    return file;
}

void write(const holder& h, const certificate_files& to) {
    need(PEM_write_X509(create(to.certificate).get(), h.certificate.get()) == 1, "certificate file");
    need(PEM_write_PrivateKey(create(to.key).get(), h.key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
         "key file");
}

} // namespace

certificates::certificates() {
    const holder ca = make({"A test's authority", nullptr, true}, nullptr);
    const holder other = make({"Another authority", nullptr, true}, nullptr);
    write(ca, pair("ca"));
    write(other, pair("unknown_ca"));
    write(make({"localhost", names_here}, &ca), server());
    write(make({"localhost", names_here, false, -2 * hour, -hour}, &ca), expired());
    write(make({"localhost", names_here, false, hour, year}, &ca), not_yet());
    write(make({"elsewhere.example", "DNS:elsewhere.example"}, &ca), wrong_name());
    write(make({"localhost", nullptr}, &ca), only_common_name());
    write(make({"localhost", names_here}, nullptr), self_signed());
    write(make({"localhost", names_here}, &other), of_unknown_ca());
    write(make({"A test's client", nullptr}, &ca), client());
}

} // namespace stn::test
