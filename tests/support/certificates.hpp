// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "support/scratch_folder.hpp"

namespace stn::test {

struct certificate_files {
    std::string certificate;
    std::string key;
};

// A certificate authority of the test's own, and what a server may show to its clients: the right
// certificate, and each kind of a wrong one. PEM files, in a folder that goes with this object.
class certificates {
  public:
    certificates();

    // The authority that clients trust. It has signed all but `self_signed` and `of_unknown_ca`.
    [[nodiscard]] std::string ca() const { return files_.file("ca.pem"); }
    [[nodiscard]] std::string unknown_ca() const { return files_.file("unknown_ca.pem"); }

    [[nodiscard]] certificate_files server() const { return pair("server"); }         // localhost, 127.0.0.1, ::1
    [[nodiscard]] certificate_files expired() const { return pair("expired"); }       // an hour ago
    [[nodiscard]] certificate_files not_yet() const { return pair("not_yet"); }       // in an hour
    [[nodiscard]] certificate_files wrong_name() const { return pair("wrong_name"); } // elsewhere.example
    // The right name only where names stood before there were subjectAltNames.
    [[nodiscard]] certificate_files only_common_name() const { return pair("only_common_name"); }
    [[nodiscard]] certificate_files self_signed() const { return pair("self_signed"); }
    [[nodiscard]] certificate_files of_unknown_ca() const { return pair("of_unknown_ca"); }
    [[nodiscard]] certificate_files client() const { return pair("client"); }

  private:
    [[nodiscard]] certificate_files pair(const std::string& name) const {
        return {files_.file(name + ".pem"), files_.file(name + ".key")};
    }

    scratch_folder files_;
};

} // namespace stn::test
