// SPDX-License-Identifier: MIT
#include "instance.hpp"

#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <sys/prctl.h>

namespace scheduler {
namespace {

using nlohmann::json;

std::optional<json> heard(Channel& stage) {
    for (;;) {
        if (auto line = stage.next()) return json::parse(*line);
        if (!stage.listen()) return std::nullopt;
    }
}

void obey(Service& service, const json& order) {
    auto ms = [&](const char* name) { return milliseconds(order.at(name).get<std::int64_t>()); };
    if (order.contains("every")) {
        service.work(Ticks{ms("every"), ms("job"), ms("shift")});
    } else {
        service.work(Locked{ms("ttl"), order.at("renew"), ms("job"), order.at("times")});
    }
}

} // namespace

std::string opening(const std::string& store, const std::string& prefix) {
    return json{{"store", store}, {"prefix", prefix}}.dump();
}

std::string order(const Ticks& work) {
    return json{{"every", work.every.count()}, {"job", work.job.count()}, {"shift", work.shift.count()}}.dump();
}

std::string order(const Locked& work) {
    return json{{"ttl", work.ttl.count()}, {"renew", work.renew}, {"job", work.job.count()}, {"times", work.times}}
        .dump();
}

int run_instance() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Channel stage(instance_fd);
    try {
        std::optional<json> said = heard(stage);
        if (!said) return 0;
        Service service(said->at("store"), said->at("prefix"), stage);
        while ((said = heard(stage))) {
            obey(service, *said);
            stage.send(line_of({Happening::leaves, now_ns(), 0, 0, false, "", 0}));
        }
        return 0;
    } catch (const std::exception& error) {
        stage.send(line_of({Happening::trouble, now_ns(), 0, 0, false, error.what(), 0}));
        return 1;
    }
}

} // namespace scheduler
