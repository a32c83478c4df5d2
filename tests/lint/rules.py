# SPDX-License-Identifier: MIT
"""The rules of the house: what a compiler does not check and a reviewer should not have to.

Each rule is a function from a Tree to findings (path, line, text); RULES at the end lists them as promises.
C++ is read by one regular expression that blanks comments and literals, so a banned word in a comment is no
finding. Names of calls that are also good names for methods (poll, send, connect) count only where they are
called unqualified, or as ::poll(...), and the file declares no function of that name.
"""

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# --- What is allowed ---------------------------------------------------------------------------------------

TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "CHANGELOG.md",
    "core", "capi", "bindings", "tests", "packaging", "examples",
}

# Layer (a path prefix; the first that matches counts) -> the first parts of the project includes it may use,
# and the third-party headers. "generated" headers live under protocol/.
LAYERS = [
    ("core/base/", {"base"}, set()),
    ("core/protocol/", {"base", "protocol"}, {"nlohmann/"}),
    ("core/engine/", {"base", "protocol", "engine"}, set()),
    ("core/io/", {"base", "protocol", "engine", "io"}, {"*"}),
    ("capi/include/", {"stanchion"}, set()),
    ("capi/src/", {"base", "protocol", "engine", "io", "stanchion"}, {"nlohmann/"}),
    ("bindings/", {"stanchion"}, {"*"}),
    ("examples/", {"stanchion"}, {"*"}),
    ("tests/conformance/", {"stanchion", "support"}, {"*"}),
]
PROJECT = {"base", "protocol", "engine", "io", "stanchion", "support"}

# The edges between the CMake targets of core/: exactly these.
TARGET_EDGES = {
    "stn_base": set(),
    "stn_protocol": {"stn_base"},
    "stn_engine": {"stn_protocol"},
    "stn_io": {"stn_engine", "stn_protocol", "stn_base", "stn_hiredis"},
}

# Exceptions, each with its reason: file -> (why, the headers and names it may use all the same). A name that nobody
# needs any more is a finding too.
PERMITS = {
    "core/engine/loop.cpp": (
        "parks the loop's thread on a wake fd, and starts that thread with every signal blocked",
        {"poll.h", "pthread.h", "sys/eventfd.h", "unistd.h", "poll", "eventfd", "read", "write", "close",
         "pthread_sigmask", "pthread_setname_np", "pthread_self"}),
    "core/engine/event_queue.cpp": (
        "a queue has an fd that event loops can poll",
        {"sys/eventfd.h", "unistd.h", "eventfd", "read", "write", "close"}),
    "core/engine/sleepers.cpp": (
        "threads sleep on a semaphore, until a moment of the kernel's clock",
        {"semaphore.h", "clock_gettime"}),
    "capi/src/fork.cpp": (
        "a handle must know that it was made before a fork",
        {"pthread.h", "pthread_atfork"}),
    "core/protocol/options.cpp": (
        "a table of parsers, which run while an option is read and never later",
        {"std::function"}),
}


def permitted(file, name):
    return name in PERMITS.get(file.path, ("", set()))[1]


STD_HEADERS = set("""
    algorithm any array atomic barrier bit bitset cassert cctype cerrno cfloat charconv chrono cinttypes climits
    cmath compare complex concepts condition_variable coroutine csignal cstdarg cstddef cstdint cstdio cstdlib
    cstring ctime deque exception expected filesystem format forward_list fstream functional future
    initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
    memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
    semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string
    string_view system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility
    valarray variant vector version
    stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h limits.h inttypes.h errno.h assert.h
    """.split())

# --- The tree ----------------------------------------------------------------------------------------------

SOURCE = {".cpp", ".hpp", ".c", ".h"}
COMMENT_MARK = {".cpp": "//", ".hpp": "//", ".c": "//", ".h": "//", ".lua": "--", ".py": "#", ".sh": "#",
                ".cmake": "#", "CMakeLists.txt": "#"}

LITERALS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<text>(?:u8|[uUL])?R"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)" | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
               | (?<!\w)(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
      | (?P<number>\b\d(?:[\w.]|'(?=\w))*)""",
    re.S | re.X)


def blank(text, literals=True):
    """`text` with comments (and literals) replaced by spaces; line numbers stay."""
    def replace(match):
        if match.group("number") or (match.group("text") and not literals):
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())
    return LITERALS.sub(replace, text)


@dataclass
class File:
    path: str
    text: str
    size: int
    code: str = field(init=False, default="")

    def __post_init__(self):
        if Path(self.path).suffix in SOURCE:
            self.code = blank(self.text)

    def includes(self):
        for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]',
                                 blank(self.text, literals=False), re.M):
            yield line_of(self.text, match.start()), match.group(1), match.group(2)


class Tree:
    """The files git knows or would add (all files, where there is no git)."""

    def __init__(self, root):
        self.root = Path(root)
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, capture_output=True, text=True) if (self.root / ".git").exists() else None
        if listed and listed.returncode == 0:
            paths = [path for path in listed.stdout.split("\0") if path]
        else:
            paths = [str(path.relative_to(root)) for path in self.root.rglob("*")
                     if path.is_file() and path.relative_to(root).parts[0] not in ("build", ".git")]
        self.files = []
        for path in sorted(set(paths)):
            full = self.root / path
            if full.is_file():
                data = full.read_bytes()
                self.files.append(File(path, data.decode("utf-8", "replace"), len(data)))
        self.by_path = {file.path: file for file in self.files}

    def sources(self, *prefixes):
        return [file for file in self.files if file.code and file.path.startswith(prefixes or ("",))]


def line_of(text, position):
    return text.count("\n", 0, position) + 1


# --- The include graph -------------------------------------------------------------------------------------

def include_graph(tree):
    for file in tree.sources():
        layer = next((layer for layer in LAYERS if file.path.startswith(layer[0])), None)
        if not layer:
            continue
        prefix, allowed, third_party = layer
        for line, bracket, name in file.includes():
            first = name.split("/")[0]
            if first in PROJECT and "/" in name:
                if first not in allowed:
                    yield file.path, line, f"{prefix} may not include {name}"
                elif prefix.startswith("core/") and bracket == "<":
                    yield file.path, line, f'write #include "{name}"'
            elif bracket == '"':
                sibling = str((Path(file.path).parent / name))
                if prefix.startswith("core/") or sibling not in tree.by_path:
                    yield file.path, line, f"{name} is not a file of this folder or of a layer below"
            elif name not in STD_HEADERS and "*" not in third_party \
                    and not any(name.startswith(known) for known in third_party) \
                    and not permitted(file, name):
                yield file.path, line, f"{prefix} may not include <{name}>"


def target_edges(tree):
    path = "core/CMakeLists.txt"
    text = tree.by_path[path].text if path in tree.by_path else ""
    found = {}
    for match in re.finditer(r"stn_layer\((\w+)([^)]*)\)", text):
        words = match.group(2).split()
        links = words[words.index("LINKS") + 1:] if "LINKS" in words else []
        found[match.group(1)] = {word for word in links if word.startswith("stn_")}
    if found != TARGET_EDGES:
        yield path, 1, f"the targets link {found}, the design says {TARGET_EDGES}"


# --- The operating system stays in core/io -----------------------------------------------------------------

CLOCKS = r"""chrono::\w*clock\b | _clock\s*::\s*now | \b(?:clock_gettime|clock_getres|gettimeofday|timespec_get
    |ftime|timerfd_\w+|__rdtsc)\s*\( | \bstd::(?:time|clock)\s*\("""
SLEEPS = r"\b(?:sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep)\s*\("
ENTROPY = r"""\b(?:random_device|mt19937(?:_64)?|minstd_rand0?|default_random_engine|ranlux\w+|knuth_b)\b
    | \b(?:getrandom|getentropy|arc4random\w*|s?rand|rand_r|[dlm]rand48)\s*\("""
OS_CALLS = r"""\b(?:socket|socketpair|getaddrinfo|recv|recvfrom|recvmsg|sendto|sendmsg|setsockopt|ppoll
    |epoll_\w+|eventfd(?:_read|_write)?|pipe2|syscall|getenv|secure_getenv|ioctl|fcntl|pthread_\w+)\s*\("""
BANNED = re.compile("|".join([CLOCKS, SLEEPS, ENTROPY, OS_CALLS]), re.X)
AMBIGUOUS = ("time", "sleep", "random", "connect", "send", "poll", "select", "bind", "listen", "accept",
             "read", "write", "open", "close", "pipe")
BEFORE_A_CALL = {"return", "else", "do", "throw", "co_return", "co_await", "co_yield"}


def uses(code, name):
    """(how, position) of each `name(`: "global" is ::name(, "plain" an unqualified call, "declared" a declaration
    or definition. Calls of members and of other namespaces are left out."""
    for match in re.finditer(rf"\b{name}\s*\(", code):
        before = code[:match.start()].rstrip()
        qualified = before.endswith("::")
        before = before[:-2].rstrip() if qualified else before
        word = re.search(r"\w*$", before).group()
        if qualified:
            if word in BEFORE_A_CALL or not word and not before.endswith(">"):
                yield "global", match.start()
        elif before.endswith((".", "->")):
            continue
        elif word and word not in BEFORE_A_CALL or re.search(r"[>*]$|(?<!&)&$", before):
            yield "declared", match.start()
        else:
            yield "plain", match.start()


def own_function(file, tree, name):
    """Does the file, or one of our headers that it includes, declare a function, member or class called `name`?"""
    headers = [tree.by_path.get("core/" + header) for _, _, header in file.includes()]
    family = [file.code] + [header.code for header in headers if header]
    return any(how == "declared" for code in family for how, _ in uses(code, name)) \
        or any(re.search(rf"\b(?:class|struct)\s+{name}\b|[\w>&*]\s+{name}\s*[;={{]", code) for code in family)


def system_calls(file, tree):
    """(name, line) of every call to a clock, entropy, a socket, sleep or the kernel."""
    for match in BANNED.finditer(file.code):
        yield re.sub(r"[\s(]", "", match.group()), line_of(file.code, match.start())
    for name in AMBIGUOUS:
        for how, position in uses(file.code, name):
            if how == "global" or how == "plain" and not own_function(file, tree, name):
                yield name, line_of(file.code, position)


def os_only_in_io(tree):
    for file in tree.sources("core/base/", "core/protocol/", "core/engine/", "capi/", "bindings/cpp/"):
        for name, line in system_calls(file, tree):
            if not permitted(file, name):
                yield file.path, line, f"{name} belongs to core/io"


def permits_are_needed(tree):
    for path, (_, names) in PERMITS.items():
        file = tree.by_path.get(path)
        used = set()
        if file:
            used.update(name for name, _ in system_calls(file, tree))
            used.update(name for _, _, name in file.includes())
            used.update(match.group() for match in IMPURE.finditer(file.code))
        for name in sorted(names - used):
            yield path, 1, f"the permit for {name} in tests/lint/rules.py is not needed any more"


IMPURE = re.compile(
    r"""\bstd::(?:thread|jthread|\w*mutex|atomic\w*|condition_variable\w*|function|move_only_function|future|promise
    |async|counting_semaphore|binary_semaphore|latch|barrier|stop_token|chrono|random_device|c(?:out|err|log|in)
    |o?f?stream|osyncstream)\b | \bthread_local\b | \b(?:f?printf|puts|fputs|getenv)\s*\(""", re.X)
IMPURE_HEADERS = set("""thread mutex shared_mutex atomic condition_variable future semaphore latch barrier stop_token
    chrono random iostream ostream istream fstream filesystem cstdio ctime csignal""".split())


def protocol_is_pure(tree):
    for file in tree.sources("core/protocol/"):
        for match in IMPURE.finditer(file.code):
            if permitted(file, match.group()):
                continue
            yield file.path, line_of(file.code, match.start()), f"{match.group()} in a pure machine"
        for line, _, name in file.includes():
            if name in IMPURE_HEADERS:
                yield file.path, line, f"<{name}> in a pure machine"


def tests_do_not_sleep(tree):
    for file in tree.sources("tests/unit/", "tests/sim/"):
        for match in re.finditer(SLEEPS, file.code):
            yield file.path, line_of(file.code, match.start()), "turn a virtual clock instead of sleeping"


UNSAFE_GIL = re.compile(r"\bgil_scoped_\w+|\bcall_guard\b|\bstatic\s+(?:const\s+)?py::")


def gil_by_hand(tree):
    for file in tree.sources("bindings/python/"):
        for match in UNSAFE_GIL.finditer(file.code):
            yield file.path, line_of(file.code, match.start()), f"{match.group()}: see bindings/python/native/support.hpp"


# --- Paper -------------------------------------------------------------------------------------------------

def door_signs(tree):
    folders = set()
    for file in tree.files:
        parts = Path(file.path).parts[:-1]
        if parts and parts[0] in TOP_LEVEL:
            folders.update("/".join(parts[:depth]) for depth in (1, 2) if depth <= len(parts))
    for folder in sorted(folders):
        sign = tree.by_path.get(f"{folder}/README.md")
        if not sign or len(sign.text.split()) < 8:
            yield f"{folder}/README.md", 1, "every folder says at its door what lives there"


def links_lead_somewhere(tree):
    for file in tree.files:
        if not file.path.endswith(".md"):
            continue
        for match in re.finditer(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", file.text):
            if not (tree.root / file.path).parent.joinpath(match.group(1)).exists():
                yield file.path, line_of(file.text, match.start()), f"there is no {match.group(1)}"


def top_level(tree):
    for name in sorted({Path(file.path).parts[0] for file in tree.files}):
        if name not in TOP_LEVEL and not name.startswith("."):
            yield name, 1, "is not one of the agreed top-level names"


def finished(tree):
    words = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
    for file in tree.files:
        for match in words.finditer(file.text):
            yield file.path, line_of(file.text, match.start()), f"{match.group()} is an issue, not a comment"


def portable(tree):
    places = re.compile(r"(?<![\w.])/(?:work|home|root|Users)/\w|\b(?:deb\.debian|pypi|registry\.npmjs|crates)\.(?:org|io)\b")
    for file in tree.files:
        for match in places.finditer(file.text):
            yield file.path, line_of(file.text, match.start()), f"{match.group()} is somebody's machine or registry"


def small(tree):
    for file in tree.files:
        if file.size > 1 << 20:
            yield file.path, 1, f"{file.size} bytes; the limit is 1 MiB"


def licensed(tree):
    for file in tree.files:
        path = Path(file.path)
        mark = COMMENT_MARK.get(path.name) or COMMENT_MARK.get(path.suffix)
        lines = file.text.splitlines()
        if lines and lines[0].startswith("#!"):
            mark = mark or "#"
            lines = lines[1:]
        wanted = [f"{mark} SPDX-License-Identifier: MIT"]
        if mark == "//":
            wanted.append("/* SPDX-License-Identifier: MIT */")
        if mark and (not lines or lines[0] not in wanted):
            yield file.path, 1, f"begins with: {wanted[0]}"


def long_files(tree):
    return [(file.path, file.text.count("\n")) for file in tree.sources() if file.text.count("\n") > 500]


RULES = [
    ("includes point down the layers only", include_graph),
    ("CMake targets link exactly the agreed layers", target_edges),
    ("clocks, entropy, sockets and sleep stay in core/io", os_only_in_io),
    ("core/protocol is pure", protocol_is_pure),
    ("every exception in the table of permits is needed", permits_are_needed),
    ("unit tests and the simulator turn a virtual clock, they never sleep", tests_do_not_sleep),
    ("Python's GIL is given up by hand, and no Python object outlives its interpreter", gil_by_hand),
    ("every folder has its door sign", door_signs),
    ("links between documents lead somewhere", links_lead_somewhere),
    ("the top level is the agreed one", top_level),
    ("nothing is marked as unfinished", finished),
    ("no path or host of one machine is written down", portable),
    ("no file is over 1 MiB", small),
    ("every source names its licence first", licensed),
]
