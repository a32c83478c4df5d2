#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the repository against the rules of the house, and the rules against a repository that breaks each one.

    python3 tests/lint/run.py

Prints one line per promise, findings under it, and `N passed, M failed` last.
"""

import sys
import tempfile
from pathlib import Path
from unittest import mock

import rules

HOUSE = Path(__file__).resolve().parents[2]
MIT = "// SPDX-License-Identifier: MIT\n"
SIGN = "# A folder\n\nWhat lives here, and what may not live here.\n"
CMAKE = """# SPDX-License-Identifier: MIT
stn_layer(stn_base base)
stn_layer(stn_protocol protocol LINKS stn_base PRIVATE_LINKS nlohmann_json::nlohmann_json)
stn_layer(stn_engine engine LINKS stn_protocol Threads::Threads)
stn_layer(stn_io io LINKS stn_engine stn_protocol stn_base PRIVATE_LINKS stn_hiredis)
"""

PERMITS = {"core/engine/park.cpp": ("why", {"poll.h", "poll"})}

# A small house in order. Much of it looks like a breach and is none.
GOOD = {
    "README.md": "# See [the core](core/README.md)\n",
    "core/README.md": SIGN,
    "core/CMakeLists.txt": CMAKE,
    "core/base/README.md": SIGN,
    "core/base/a.hpp": MIT + "#include <string>\n#include <mutex>\n// never call time(nullptr) here\n",
    "core/protocol/README.md": SIGN,
    "core/protocol/machine.hpp": MIT + '#include <nlohmann/json.hpp>\n#include "base/a.hpp"\n'
        '#include "protocol/scripts.gen.hpp"\nstruct machine { int poll(); void send(int); int n = 1\'000; };\n',
    "core/protocol/machine.cpp": MIT + '#include "protocol/machine.hpp"\n'
        'int machine::poll() { send(1); return poll(); }\nchar quote = \'"\'; int f(machine& m) { return m.poll(); }\n'
        'auto why = R"(std::mutex, rand() and // #include "io/a.hpp")";\n',
    "core/protocol/machine_part.cpp": MIT + '#include "protocol/machine.hpp"\nvoid machine::more() { send(2); }\n',
    "core/engine/README.md": SIGN,
    "core/engine/loop.cpp": MIT + '#include "protocol/machine.hpp"\n#include <thread>\n'
        "int until(int wake_time); int g(machine& m) { return m.poll() + until(3); }\n"
        "struct core { clock& time; core(clock& c) : time(c) {} };\n",
    "core/engine/park.cpp": MIT + "#include <poll.h>\nint park(pollfd* p) { return ::poll(p, 1, -1); }\n",
    "core/io/README.md": SIGN,
    "core/io/clock.cpp": MIT + '#include "engine/loop.hpp"\n#include <time.h>\n'
        "int now() { timespec t; return clock_gettime(7, &t) + (int)time(nullptr); }\n",
    "capi/README.md": SIGN,
    "capi/src/README.md": SIGN,
    "capi/src/client.cpp": MIT + '#include "stanchion/stanchion.h"\n#include "handles.hpp"\n#include "io/clock.hpp"\n',
    "capi/src/handles.hpp": MIT,
    "examples/README.md": SIGN,
    "examples/c/README.md": SIGN,
    "examples/c/main.c": MIT + "#include <stanchion/stanchion.h>\n#include <unistd.h>\n",
    "tests/README.md": SIGN,
    "tests/unit/README.md": SIGN,
    "tests/unit/a.cpp": MIT + '#include "engine/loop.hpp"\n#include "support/virtual_time.hpp"\n',
    "packaging/README.md": SIGN,
    "packaging/run.sh": "#!/usr/bin/env bash\n# SPDX-License-Identifier: MIT\n",
}

# (rule, file that is added or changed, what it then holds; None takes it away)
BREACHES = [
    ("include_graph", "core/base/a.hpp", MIT + '#include "protocol/machine.hpp"\n'),
    ("include_graph", "core/base/a.hpp", MIT + "#include <nlohmann/json.hpp>\n"),
    ("include_graph", "core/protocol/b.cpp", MIT + '#include "engine/loop.hpp"\n'),
    ("include_graph", "core/engine/b.cpp", MIT + '#include "io/clock.hpp"\n'),
    ("include_graph", "core/engine/b.cpp", MIT + "#include <sys/socket.h>\n"),
    ("include_graph", "core/engine/b.cpp", MIT + '#include "stanchion/stanchion.h"\n'),
    ("include_graph", "core/engine/b.cpp", MIT + '#include "loop.hpp"\n'),
    ("include_graph", "core/engine/b.cpp", MIT + "#include <base/a.hpp>\n"),
    ("include_graph", "examples/c/main.c", MIT + '#include "engine/loop.hpp"\n'),
    ("include_graph", "bindings/cpp/a.hpp", MIT + '#include "../../core/base/a.hpp"\n'),
    ("include_graph", "tests/conformance/a.cpp", MIT + '#include "engine/loop.hpp"\n'),
    ("target_edges", "core/CMakeLists.txt", CMAKE.replace("LINKS stn_protocol T", "LINKS stn_protocol stn_io T")),
    ("target_edges", "core/CMakeLists.txt", CMAKE.replace("stn_layer(stn_io", "stn_layer(stn_os")),
    *[("os_only_in_io", "core/engine/b.cpp", MIT + f"long f() {{ {call}; }}\n") for call in (
        "return std::chrono::steady_clock::now().time_since_epoch().count()", "using std::chrono::system_clock",
        "auto t = steady_clock::now()", "clock_gettime(1, &t)", "gettimeofday(&t, 0)", "return time(nullptr)",
        "return ::time(0)", "long t = std::time(nullptr)", "getrandom(p, 16, 0)", "std::random_device d",
        "std::mt19937 m{7}", "return rand()", "int s = socket(2, 1, 0)", "connect(s, a, n)",
        "if (connect(s, a, n) != 0) return 1", "::send(s, p, n, 0)", "return ::send(s, p, n, 0)", "recv(s, p, n, 0)",
        "poll(&p, 1, 5)", "while (::poll(&p, 1, 5) < 0) {}", "epoll_wait(e, v, 1, 0)", "eventfd(0, 0)",
        "getenv(\"HOME\")", "std::this_thread::sleep_for(s)", "usleep(5)", "sleep(1)", "syscall(SYS_futex)",
        "std::default_random_engine e", "int64_t r = random()", "write(fd, p, n)")],
    ("os_only_in_io", "capi/src/client.cpp", MIT + "long f() { return time(nullptr); }\n"),
    ("os_only_in_io", "core/base/a.hpp", MIT + "inline int f() { return rand(); }\n"),
    *[("protocol_is_pure", "core/protocol/b.cpp", MIT + f"{line}\n") for line in (
        "#include <thread>", "#include <chrono>", "#include <iostream>", "#include <random>", "std::mutex m;",
        "std::atomic<int> a;", "std::function<void()> f;", "thread_local int n;", "void f() { printf(s); }",
        "std::condition_variable_any c;", "auto f(std::chrono::milliseconds);")],
    ("permits_are_needed", "core/engine/park.cpp", MIT + "#include <poll.h>\n"),
    ("os_only_in_io", "core/engine/park.cpp", MIT + "int park(pollfd* p) { return ::poll(p, 1, -1) + ::read(0, p, 1); }\n"),
    ("tests_do_not_sleep", "tests/unit/a.cpp", MIT + "void f() { std::this_thread::sleep_for(1s); }\n"),
    *[("gil_by_hand", "bindings/python/native/a.cpp", MIT + f"{line}\n") for line in (
        "py::gil_scoped_release released;", "m.def(f, py::call_guard<guard>());", "static py::object type;")],
    ("door_signs", "core/io/README.md", None),
    ("door_signs", "core/README.md", None),
    ("door_signs", "tests/unit/README.md", "# unit\n"),
    ("door_signs", "bindings/cpp/a.hpp", MIT),
    ("links_lead_somewhere", "README.md", "[gone](core/gone.md)\n"),
    ("top_level", "cmake/a.cmake", "# SPDX-License-Identifier: MIT\n"),
    ("top_level", "NOTES.md", "notes\n"),
    ("finished", "core/base/a.hpp", MIT + "// TO" "DO: later\n"),
    ("finished", "packaging/README.md", SIGN + "FIX" "ME\n"),
    ("finished", "core/base/a.hpp", MIT + "// XX" "X\n"),
    ("portable", "packaging/run.sh", "#!/bin/sh\n# SPDX-License-Identifier: MIT\ncd /ho" "me/me/src\n"),
    ("portable", "README.md", "see /wo" "rk/main\n"),
    ("portable", "packaging/run.sh", "#!/bin/sh\n# SPDX-License-Identifier: MIT\nping py" "pi.org\n"),
    ("small", "tests/unit/data.bin", "x" * ((1 << 20) + 1)),
    ("licensed", "core/base/a.hpp", "#pragma once\n" + MIT),
    ("licensed", "packaging/run.sh", "#!/bin/sh\necho\n"),
    ("licensed", "core/protocol/scripts/a.lua", "return 1\n"),
    ("licensed", "core/CMakeLists.txt", CMAKE.split("\n", 1)[1]),
]


def findings_in(house):
    """name of the rule -> findings, in a repository written down as {path: text}."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(rules.PERMITS, PERMITS, clear=True):
        for path, text in house.items():
            if text is not None:
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        tree = rules.Tree(folder)
        return {rule.__name__: list(rule(tree)) for _, rule in rules.RULES}


def main():
    passed = failed = 0

    def report(promise, findings):
        nonlocal passed, failed
        passed, failed = (passed, failed + 1) if findings else (passed + 1, failed)
        print("FAILED" if findings else "ok    ", promise)
        for path, line, text in findings:
            print(f"         {path}:{line}: {text}")

    tree = rules.Tree(HOUSE)
    for promise, rule in rules.RULES:
        report(promise, list(rule(tree)))

    good = findings_in(GOOD)
    report("the rules find nothing in a house in order", [finding for found in good.values() for finding in found])
    for name, path, text in BREACHES:
        change = "gone" if text is None else " ".join(text.replace(MIT, "").split())[-60:]
        if findings := findings_in({**GOOD, path: text})[name]:
            report(f"{name} bites: {path}: {change}", [])
        else:
            report(f"{name} bites: {path}: {change}", [(path, 1, "was not found")])

    for path, lines in rules.long_files(tree):
        print(f"note   {path} has {lines} lines")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
