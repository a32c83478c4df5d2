#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py BUILD: the promises of the C ABI, judged from outside.

The header compiles alone, twice, as C99 to C17 and C++11 to C++20 without a warning; its tables agree with the core's;
what it declares, what capi/stanchion.symbols lists and what the shared library exports is the same; the programs of
this folder keep their promises. The last line is `N passed, M failed`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "capi/include/stanchion/stanchion.h"
SYMBOLS = ROOT / "capi/stanchion.symbols"
INCLUDES = [f"-I{ROOT}/capi/include", f"-I{ROOT}/bindings/cpp/include"]
STRICT = "-pedantic -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wundef -Werror -fsyntax-only".split()
HIREDIS = re.compile(r"(redisv?[A-Z]|hex_digit_to_int$|_?_redis|freeReplyObject|sds|hi_|hiredis)")
FOREIGN = re.compile(HIREDIS.pattern + r"|(SSL|TLS|X509|EVP|BIO|ERR|CRYPTO|OPENSSL|OSSL|PEM|ASN1|RAND|BN|RSA|EC)_")
C_ONLY = "-Wstrict-prototypes -Wold-style-definition -Wmissing-prototypes -Wc++-compat".split()

passed = failed = 0


def promise(kept, what, detail=""):
    global passed, failed
    passed += bool(kept)
    failed += not kept
    print("ok     " if kept else "FAILED ", what, flush=True)
    if not kept and detail:
        print("\n".join("    | " + line for line in str(detail).strip().splitlines()[:40]), flush=True)
    return kept


def run(*command, **options):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **options)


# ---- The header as a compiler sees it

TWICE = """
#include <stanchion/stanchion.h>
#include <stanchion/stanchion.h>
extern const char* const words[];
const char* const words[] = {
#define WORD(number, NAME, name, retryable, text) #NAME, #name, text,
    STN_STATUS_MAP(WORD)
#undef WORD
#define WORD(name, doc) #name, doc,
    STN_STATS_MAP(WORD)
#undef WORD
#define WORD(number, NAME, name, text) #NAME, #name, text,
    STN_REASON_MAP(WORD)
#undef WORD
    STN_VERSION_STRING};
extern const int64_t numbers[];
const int64_t numbers[] = {STN_VERSION_NUMBER, STN_ABI_VERSION, STN_DEFAULT_MS, STN_NO_LIMIT, STN_DURATION_MAX_MS,
                           STN_INTERNAL, STN_EVENT_ERROR, STN_ANSWER_SOURCE_MASK, STN_NOTICE_ALL};
"""


def header_compiles(folder):
    twice = {"c": folder / "twice.c", "c++": folder / "twice.cpp"}
    for source in twice.values():
        source.write_text(TWICE)
    for compiler, language, standards in [
        ("gcc", "c", "c99 c11 c17 c2x"),
        ("clang-19", "c", "c99 c11 c17 c23"),
        ("g++", "c++", "c++11 c++14 c++17 c++20 c++23"),
        ("clang++-19", "c++", "c++11 c++14 c++17 c++20 c++23"),
    ]:
        if not shutil.which(compiler):
            print(f"        {compiler} is not installed: left out")
            continue
        for standard in standards.split():
            flags = STRICT + (C_ONLY if language == "c" else [])
            done = run(compiler, f"-std={standard}", *flags, *INCLUDES, twice[language])
            promise(done.returncode == 0, f"stanchion.h, twice, as {standard} by {compiler}", done.stdout)
        if language != "c++":
            continue
        alone = folder / "alone.cpp"
        alone.write_text("#include <stanchion/stanchion.hpp>\n#include <stanchion/stanchion.hpp>\n")
        for standard in ("c++17", "c++20"):
            for define in ("-DSTANCHION_NO_JSON", "-DSTANCHION_WITH_JSON_IF_THERE"):
                done = run(compiler, f"-std={standard}", define, *STRICT, *INCLUDES, alone)
                promise(done.returncode == 0, f"stanchion.hpp as {standard} {define} by {compiler}", done.stdout)


# ---- The header as a manual, and its tables

def declared():
    text = run("gcc", "-E", "-P", "-std=c99", *INCLUDES, "-include", HEADER, "-x", "c", os.devnull).stdout
    text = re.sub(r"\btypedef\b[^;]*;", "", text)
    return sorted(set(re.findall(r"\b(stn_\w+)\s*\(", text)))


def table(text, macro, width):
    """The rows of an X-macro: lists of the first `width` columns, texts unquoted."""
    body = re.search(rf"#define {macro}\(X\)(.*?)\n\n", text, re.S).group(1).replace("\\\n", " ")
    return [[column.strip().strip('"') for column in row.split(",", width - 1)]
            for row in re.findall(r'X\(((?:[^()"]|"[^"]*")*)\)', body)]


def header_is_a_manual(names):
    text = HEADER.read_text()
    lines = text.splitlines()
    promise(text.startswith("/* SPDX-License-Identifier: MIT */"), "the licence stands first")
    silent = [name for name in names
              if not any(re.search(rf"\b{name}\(", line) and line.startswith("STN_API")
                         and lines[i - 1].rstrip().endswith("*/") for i, line in enumerate(lines))]
    promise(not silent, "every function is declared once, after a comment of its own", silent)
    plain = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    bad = [t for t in re.findall(r"STN_API ([^;]*);", plain) if re.search(r"\b(long|unsigned|bool|enum|time_t)\b", t)]
    promise(not bad, "no type in a signature whose width is not fixed", bad)
    ends = [t for t in re.findall(r"STN_API ([^;]*);", plain) if "stn_error** err" in t and
            not re.search(r"stn_error\*\* err\)\s*STN_NOEXCEPT$", t)]
    promise(not ends, "the error is the last parameter", ends)
    loud = [t for t in re.findall(r"STN_API ([^;]*);", plain) if not t.endswith("STN_NOEXCEPT")]
    promise(not loud, "every function is noexcept for C++", loud)


def tables_agree():
    text = HEADER.read_text()
    rows = table(text, "STN_STATUS_MAP", 5)
    promise([int(row[0]) for row in rows] == [-i for i in range(len(rows))], "status numbers fall without a gap")
    promise(all(row[1] == row[2].upper() for row in rows), "a status has one name")
    core = table((ROOT / "core/base/status.hpp").read_text(), "STN_STATUS_TABLE", 4)
    ours = [[row[2], row[0], {"0": "false", "1": "true"}[row[3]], row[4]] for row in rows]
    promise(ours == core, "the statuses are the core's, with number, retryable and text",
            [pair for pair in zip(ours, core) if pair[0] != pair[1]])
    stats = [row[0] for row in table(text, "STN_STATS_MAP", 2)]
    core = [row[0] for row in table((ROOT / "core/protocol/stat.hpp").read_text(), "STN_STAT_TABLE", 1)]
    promise(stats == core, "the stats are the core's, in order", f"{stats}\n{core}")


# ---- The shared library

def library_exports(library, names):
    out = run("nm", "-D", "--defined-only", library).stdout.splitlines()
    found = sorted({line.split()[-1].split("@")[0] for line in out} - {"STN_0"})
    promise(found == names, "the shared library exports what the header declares, and nothing else",
            f"only exported: {sorted(set(found) - set(names))}\nonly declared: {sorted(set(names) - set(found))}")
    versions = {line.split()[-1].partition("@@")[2] for line in out if " T " in line}
    promise(versions == {"STN_0"}, "under one version node, STN_0", versions)
    dynamic = run("readelf", "-dW", library).stdout
    promise("[libstanchion.so.0]" in dynamic, "its SONAME is libstanchion.so.0", dynamic)
    promise("NODELETE" in dynamic, "it is never unmapped", dynamic)
    promise("TEXTREL" not in dynamic, "it has no text relocations", dynamic)
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    sane = re.compile(r"(lib(stdc\+\+|m|gcc_s|c|pthread|dl|rt|ssl|crypto|asan|ubsan|tsan)|ld-linux.*)\.so")
    promise(all(sane.match(n) for n in needed), "it needs system libraries only, no hiredis", needed)
    symbols = run("nm", "-D", library).stdout.splitlines()
    theirs = [line for line in symbols if FOREIGN.match(line.split()[-1]) and " U " not in line]
    promise(not theirs, "it exports nothing of hiredis or OpenSSL", "\n".join(theirs))
    hiredis = [line for line in symbols if HIREDIS.match(line.split()[-1])]
    promise(not hiredis, "what it uses of hiredis is inside, out of reach of another copy", "\n".join(hiredis))
    unique = [line for line in symbols if " u " in line]
    promise(not unique, "it has no symbol that would be shared with another copy", unique)


def program_keeps(build, name, *arguments):
    global passed, failed
    program = build / "tests/abi" / name
    if not program.exists():
        promise(False, f"{name} was built")
        return
    env = dict(os.environ, LD_LIBRARY_PATH=str(build / "capi"))
    try:
        done = run(program, *arguments, env=env, timeout=120)
    except subprocess.TimeoutExpired as slow:
        promise(False, f"{name} ends", (slow.stdout or b"").decode(errors="replace"))
        return
    counts = re.findall(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M)
    good, bad = map(sum, zip(*[(int(p), int(f)) for p, f in counts])) if counts else (0, 0)
    passed += good
    failed += bad
    if bad == 0 and counts and done.returncode == 0:
        print("ok      " + f"{name}: {good} promises", flush=True)
        return
    print("\n".join(f"    | {line}" for line in done.stdout.splitlines() if not line.startswith("ok ")), flush=True)
    if bad == 0:
        promise(False, f"{name} ends well", f"exit status {done.returncode}")


def main():
    build = Path(sys.argv[1]).resolve()
    names = declared()
    with tempfile.TemporaryDirectory() as folder:
        header_compiles(Path(folder))
    header_is_a_manual(names)
    tables_agree()
    listed = SYMBOLS.read_text().split()
    promise(listed == sorted(set(listed)), "stanchion.symbols is sorted")
    promise(listed == names, "stanchion.symbols lists what the header declares", set(listed) ^ set(names))
    used = set(re.findall(r"\bstn_\w+(?=\()", (ROOT / "tests/abi/programs/every_function.c").read_text()))
    promise(set(names) <= used, "every_function.c calls every function", sorted(set(names) - used))

    library = build / "capi/libstanchion.so.0"
    if library.exists() or any((ROOT / "capi/src").glob("*.cpp")):
        if promise(library.exists(), "the shared library was built"):
            library_exports(library, names)
        for name in ("every_function", "bad_input", "fork", "hpp", "hpp_locks"):
            program_keeps(build, name)
        program_keeps(build, "dlopen_threads", library)
    else:
        print("        capi/src has no source yet: the header was judged alone")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
