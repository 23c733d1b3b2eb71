#!/usr/bin/env bash
# Set Claudius up in this checkout and begin to talk; or run the tests. See ./setup.sh --help.
set -euo pipefail

usage() {
    cat <<'END'
Set Claudius up, all inside this checkout, and begin to talk.

  ./setup.sh            install, fill a new home, then talk (one line of talk where there is no terminal)
  ./setup.sh --claude   install the Claude Agent SDK too (409 MB); asked for by itself where you are logged in to Claude
  ./setup.sh test       install everything and run the tests but the slow and nightly ones; further words go to pytest
  ./setup.sh --help     this

It needs Python 3.11 or later, or uv. It writes to .venv here, to the home (CLAUDIUS_HOME, else ~/.claudius), and a
link `claudius` into ~/.local/bin if that is on your PATH. It can be run again at any time: what is there stays.

Libraries come in the versions of requirements.lock, each download compared with its hash. The lock is for CPython 3.11 to
3.13 on Linux and macOS. Where it does not fit, setup.sh says so and takes any version that pyproject.toml allows.
END
}

say() { printf '%s\n' "setup: $*" >&2; }

fail() {
    say "$*"
    exit 1
}

# The first Python that can hold Claudius. Without uv it must be able to make environments as well.
find_python() {
    local candidate needs='import sys; assert sys.version_info >= (3, 11); import sqlite3, ssl'
    command -v uv >/dev/null || needs="$needs, venv, ensurepip"
    for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.14 python; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null && "$candidate" -c "$needs" 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
}

make_environment() {
    local python
    if .venv/bin/python -c 'import sys; assert sys.version_info >= (3, 11)' 2>/dev/null; then
        return
    fi
    if [ -e .venv ]; then
        [ -f .venv/pyvenv.cfg ] || fail ".venv is not a Python environment: move it away and run ./setup.sh again"
        say "the environment in .venv does not work any more: making it anew"
        rm -rf .venv
    fi
    python=$(find_python)
    if command -v uv >/dev/null; then
        say "making .venv with uv (${python:-a Python that uv brings})"
        export UV_PYTHON_INSTALL_DIR="$PWD/.venv-python"
        uv venv --quiet --python "${python:->=3.11}" .venv || fail "uv could not make .venv: see above"
        if [ -d .venv-python ]; then echo '*' >.venv-python/.gitignore; fi
    elif [ -n "$python" ]; then
        say "making .venv with $python"
        "$python" -m venv .venv || fail "$python could not make .venv: see above"
    else
        fail "no Python 3.11 or later with venv was found: install one (on Debian: python3 and python3-venv), or uv"
    fi
}

# What .venv was last given: this very pyproject.toml and lock, and these extras (what it ever held is kept).
stamp() { cksum pyproject.toml requirements.lock; }
extras_held() { if [ -f .venv/claudius-extras ]; then cat .venv/claudius-extras; fi; }

is_installed() {
    local extra
    [ "$(cat .venv/claudius-stamp 2>/dev/null)" = "$(stamp)" ] || return 1
    for extra in "$@"; do
        case " $(extras_held) " in *" $extra "*) ;; *) return 1 ;; esac
    done
    .venv/bin/claudius --version >/dev/null 2>&1
}

# Whether each library of these extras is there in some version, and `claudius` is this checkout's.
is_usable() {
    .venv/bin/python - "$@" 2>/dev/null <<'END'
import pathlib, re, sys, tomllib
from importlib.metadata import version

import claudius

assert pathlib.Path(claudius.__file__).is_relative_to(pathlib.Path.cwd())
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
for wanted in [project["dependencies"], *(project["optional-dependencies"][extra] for extra in sys.argv[1:])]:
    for line in wanted:
        version(re.match(r"[\w.-]+", line)[0])
END
}

# Print the part of requirements.lock that these extras need, each version with its hashes, and what builds Claudius.
# Fails where the lock was not made for this Python, or lacks what pyproject.toml asks for.
locked() {
    .venv/bin/python - "$@" <<'END'
import pathlib, re, sys, tomllib

if sys.implementation.name != "cpython" or not (3, 11) <= sys.version_info[:2] <= (3, 13):
    sys.exit("requirements.lock is for CPython 3.11 to 3.13")
same = lambda name: re.sub(r"[-_.]+", "-", name).lower()
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
lists = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in sys.argv[1:])]
needed = {same(re.match(r"[\w.-]+", line)[0]) for lines in lists for line in lines} | {"hatchling", "editables"}
parts = re.split(r"^(?=\w)", pathlib.Path("requirements.lock").read_text(), flags=re.MULTILINE)[1:]
names = [same(re.match(r"[\w.-]+", part)[0]) for part in parts]
if lacking := needed - set(names):
    sys.exit(f"requirements.lock lacks {', '.join(sorted(lacking))}: .ci/run lock renews it")
wanted_by = [set(re.findall(r"^    #(?: via)? +([\w.-]+)$", part, flags=re.MULTILINE)) for part in parts]
while more := {name for name, by in zip(names, wanted_by) if by & needed} - needed:
    needed |= more
print("".join(part for name, part in zip(names, parts) if name in needed))
END
}

# Install from the lock: every download must have a hash that stands there. 1 = it does not fit here, 2 = not done.
install_locked() {
    local said
    if ! locked "$@" >.venv/claudius-requirements; then return 1; fi
    said=$("${tool[@]}" --require-hashes -r .venv/claudius-requirements 2>&1 | tee >(cat >&2)) || {
        case "$said" in
        *"DO NOT MATCH THE HASHES"* | *"Hash mismatch"*)
            fail "a download is not the one that requirements.lock names (see above): nothing of it was installed" ;;
        esac
        return 2
    }
    "${tool[@]}" --no-deps --no-build-isolation -e . >&2 || return 2
}

install() {
    local all list tool code=0
    if is_installed "$@"; then
        say "already installed: $*"
        return
    fi
    # shellcheck disable=SC2046 # words on purpose
    all=$(printf '%s\n' "$@" $(extras_held) | sort -u | paste -sd ' ' -)
    list=${all// /,}
    say "installing Claudius with $list into .venv (a minute or two the first time)"
    rm -f .venv/claudius-stamp
    tool=(.venv/bin/python -m pip install --disable-pip-version-check --progress-bar on)
    if command -v uv >/dev/null; then tool=(uv pip install --compile-bytecode --python .venv/bin/python); fi
    # shellcheck disable=SC2086 # words on purpose
    install_locked $all || code=$?
    if [ "$code" -ne 0 ]; then
        say "the versions of requirements.lock could not be installed here (see above):" \
            "trying any that pyproject.toml allows, without hashes"
        code=0
        "${tool[@]}" -e ".[$list]" >&2 || code=$?
    fi
    if [ "$code" -eq 0 ]; then
        printf '%s\n' "$all" >.venv/claudius-extras
        stamp >.venv/claudius-stamp
    elif is_usable "$@"; then
        say "the installation could not be renewed (see above): going on with what is there"
    else
        fail "the installation failed: see above; is the network there?"
    fi
}

is_logged_in_to_claude() {
    local bounded=()
    command -v claude >/dev/null || return 1
    if command -v timeout >/dev/null; then bounded=(timeout 20); fi
    ${bounded[@]+"${bounded[@]}"} claude auth status >/dev/null 2>&1 </dev/null
}

link() {
    local bin="${HOME:-}/.local/bin"
    case ":$PATH:" in *":$bin:"*) ;; *) return ;; esac
    if [ -e "$bin/claudius" ] && [ ! -L "$bin/claudius" ]; then
        say "$bin/claudius is somebody else's: left alone; call $PWD/.venv/bin/claudius"
        return
    fi
    if mkdir -p "$bin" && ln -sfn "$PWD/.venv/bin/claudius" "$bin/claudius"; then
        say "the command is linked: $bin/claudius"
    else
        say "$bin cannot be written: call $PWD/.venv/bin/claudius"
    fi
}

talk() {
    if [ -t 0 ] && [ -t 1 ]; then
        say "all is ready; say hello"
        exec .venv/bin/claudius chat
    fi
    .venv/bin/claudius chat --once "Hello Claudius, you have just been set up. Who are you?" </dev/null || {
        local code=$?
        say "all is installed, but the first reply did not come: .venv/bin/claudius doctor tells why"
        exit "$code"
    }
}

main() {
    local extras=(api discord images slack)
    cd "$(dirname "${BASH_SOURCE[0]}")"
    case "${1:-}" in
    -h | --help)
        usage
        return
        ;;
    test)
        shift
        make_environment
        install all api claude dev discord slack
        local code=0
        .venv/bin/python -m pytest -n auto "$@" || code=$?
        [ "$code" -eq 1 ] || exit "$code"
        say "what failed among the others is run once more, alone: a busy machine breaks deadlines, a fault stays one"
        exec .venv/bin/python -m pytest -n 0 --last-failed "$@"
        ;;
    --claude) extras+=(claude) ;;
    "") if is_logged_in_to_claude; then extras+=(claude); fi ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    make_environment
    install "${extras[@]}"
    .venv/bin/claudius seed >&2 || fail "the home could not be filled: see above"
    link
    talk
}

main "$@"
