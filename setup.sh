#!/usr/bin/env bash
# Set Claudius up in this checkout and begin to talk; or run the tests. See ./setup.sh --help.
set -euo pipefail

usage() {
    cat <<'END'
Set Claudius up, all inside this checkout, and begin to talk.

  ./setup.sh            install, fill a new home, greet you, then talk. Where there is no terminal it says one line to a
                        new soul, to show that it answers, and nothing to one that has spoken before
  ./setup.sh --no-talk  install, fill a new home and greet you; say nothing to the soul
  ./setup.sh --claude   install the Claude Agent SDK too (409 MB); asked for by itself where you are logged in to Claude
  ./setup.sh --home     install llama.cpp too, for a model that thinks on this machine (80 MB; the model comes on top)
  ./setup.sh --postgres install the driver of PostgreSQL too, for several workers (docs/scale.md)
  ./setup.sh test       install everything and run the tests; further words go to pytest. It leaves out the slow and
                        nightly forms, and says how many: `.ci/run full` and `.ci/run nightly` run them
  ./setup.sh tools      install what the tests need, and run none of them
  ./setup.sh --help     this

It needs Python 3.11 or later, or uv. It writes to .venv here, to the home (CLAUDIUS_HOME, else ~/.claudius), and a
link `claudius` into ~/.local/bin if that is on your PATH. It can be run again at any time: what is there stays. What the
installer says goes to .venv/claudius-install.log, and is shown if the installation fails.

It takes the Python that PYTHON names, else the first that fits of python3, python3.13, python3.12, python3.11, python3.14
and python. Where .venv is of another Python than PYTHON, the environment is made beside it: .venv-VERSION. So
`PYTHON=python3.13 ./setup.sh test` runs the tests on that Python, and leaves .venv as it is.

Libraries come in the versions of requirements.lock, each download compared with its hash. The lock is for CPython 3.11 to
3.13 on Linux and macOS. Where it does not fit, setup.sh says so and takes any version that pyproject.toml allows.
END
}

# Say a line; on a terminal it is broken between words.
say() {
    local columns=0
    if [ -t 2 ]; then columns=$(stty size <&2 2>/dev/null | cut -d ' ' -f 2); fi
    if [ "${columns:-0}" -ge 20 ]; then
        printf '%s\n' "setup: $*" | fold -s -w "$columns" >&2
    else
        printf '%s\n' "setup: $*" >&2
    fi
}

fail() {
    say "$*"
    exit 1
}

# The first Python that can hold Claudius; of PYTHON's no other. Without uv it must be able to make environments as well.
find_python() {
    local candidate candidates=(python3 python3.13 python3.12 python3.11 python3.14 python)
    local needs='import sys; assert sys.version_info >= (3, 11); import sqlite3, ssl'
    if [ -n "${PYTHON:-}" ]; then candidates=("$PYTHON"); fi
    command -v uv >/dev/null || needs="$needs, venv, ensurepip"
    for candidate in "${candidates[@]}"; do
        if command -v "$candidate" >/dev/null && "$candidate" -c "$needs" 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
}

version_of() { "$1" -c 'import sys; print(*sys.version_info[:3], sep=".")' 2>/dev/null; }

# Run an installer with its output in the log, and show on a terminal that it goes on. Where it fails, show the log's end.
quietly() {
    local log="$venv/claudius-install.log" code=0 watching=
    : >"$log"
    if [ -t 2 ]; then
        show_progress "$log" &
        watching=$!
    fi
    "$@" >"$log" 2>&1 || code=$?
    if [ -n "$watching" ]; then
        kill "$watching" 2>/dev/null || true
        wait "$watching" 2>/dev/null || true
        printf '\r%70s\r' '' >&2
    fi
    if [ "$code" -ne 0 ]; then tail -n 20 "$log" >&2; fi
    return "$code"
}

show_progress() {
    local passed_s=0 package
    trap 'exit 0' TERM
    while kill -0 "$$" 2>/dev/null; do # not after an interrupt, which a command in the background does not hear
        package=$(sed -nE 's/^(Collecting|Building wheel for) ([A-Za-z0-9._-]+).*/\2/p
            s/^Installing collected packages.*/unpacking/p' "$1" | tail -n 1)
        printf '\rsetup: %4d s  %-50.50s' "$passed_s" "$package" >&2
        sleep 1
        passed_s=$((passed_s + 1))
    done
}

make_environment() {
    local python
    if [ -n "${PYTHON:-}" ]; then
        python=$(find_python)
        [ -n "$python" ] || fail "PYTHON=$PYTHON is no Python 3.11 or later with venv"
        case "$(version_of .venv/bin/python)" in
        "" | "$(version_of "$python")") ;;
        *)
            venv=.venv-$(version_of "$python")
            called=$PWD/$venv/bin/claudius
            ;;
        esac
    fi
    if "$venv/bin/python" -c 'import sys; assert sys.version_info >= (3, 11)' 2>/dev/null; then
        return
    fi
    if [ -e "$venv" ]; then
        [ -f "$venv/pyvenv.cfg" ] || fail "$venv is not a Python environment: move it away and run ./setup.sh again"
        say "the environment in $venv does not work any more: making it anew"
        rm -rf "$venv"
    fi
    python=$(find_python)
    if command -v uv >/dev/null; then
        say "making $venv with uv (${python:-a Python that uv brings})"
        export UV_PYTHON_INSTALL_DIR="$PWD/.venv-python"
        uv venv --quiet --python "${python:->=3.11}" "$venv" || fail "uv could not make $venv: see above"
        if [ -d .venv-python ]; then echo '*' >.venv-python/.gitignore; fi
    elif [ -n "$python" ]; then
        say "making $venv with $python"
        "$python" -m venv "$venv" || fail "$python could not make $venv: see above"
    else
        fail "no Python 3.11 or later with venv was found: install one (on Debian: python3 and python3-venv), or uv"
    fi
}

# What .venv was last given: this very pyproject.toml and lock, and these extras (what it ever held is kept).
stamp() { cksum pyproject.toml requirements.lock; }
extras_held() { if [ -f "$venv/claudius-extras" ]; then cat "$venv/claudius-extras"; fi; }

is_installed() {
    local extra
    [ "$(cat "$venv/claudius-stamp" 2>/dev/null)" = "$(stamp)" ] || return 1
    for extra in "$@"; do
        case " $(extras_held) " in *" $extra "*) ;; *) return 1 ;; esac
    done
    "$venv/bin/claudius" --version >/dev/null 2>&1
}

# Whether each library of these extras is there in some version, and `claudius` is this checkout's.
is_usable() {
    "$venv/bin/python" - "$@" 2>/dev/null <<'END'
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
    "$venv/bin/python" - "$@" <<'END'
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
    if ! locked "$@" >"$venv/claudius-requirements"; then return 1; fi
    quietly "${tool[@]}" --require-hashes -r "$venv/claudius-requirements" || {
        if grep -qE "DO NOT MATCH THE HASHES|Hash mismatch" "$venv/claudius-install.log"; then
            fail "a download is not the one that requirements.lock names (see above): nothing of it was installed"
        fi
        return 2
    }
    quietly "${tool[@]}" --no-deps --no-build-isolation -e . || return 2
}

install() {
    local all list tool code=0
    if is_installed "$@"; then
        return
    fi
    # shellcheck disable=SC2046 # words on purpose
    all=$(printf '%s\n' "$@" $(extras_held) | sort -u | paste -sd ' ' -)
    list=${all// /,}
    say "installing Claudius into $venv, with $list: a minute or two the first time"
    rm -f "$venv/claudius-stamp"
    tool=("$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off)
    if command -v uv >/dev/null; then tool=(uv pip install --compile-bytecode --python "$venv/bin/python"); fi
    # shellcheck disable=SC2086 # words on purpose
    install_locked $all || code=$?
    if [ "$code" -ne 0 ]; then
        say "the versions of requirements.lock could not be installed here (see above):" \
            "trying any that pyproject.toml allows, without hashes"
        code=0
        quietly "${tool[@]}" -e ".[$list]" || code=$?
    fi
    if [ "$code" -eq 0 ]; then
        printf '%s\n' "$all" >"$venv/claudius-extras"
        stamp >"$venv/claudius-stamp"
        # now, because Python keeps what it could write of a compiled file where the disk is full
        "$venv/bin/python" -m compileall -qq daemon || true
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
    case ":$PATH:" in
    *":$bin:"*) ;;
    *)
        say "the command is $called; it is claudius once ~/.local/bin is on your PATH and ./setup.sh has run again"
        return
        ;;
    esac
    if [ -e "$bin/claudius" ] && [ ! -L "$bin/claudius" ]; then
        say "$bin/claudius is not from this checkout: left alone; call $called"
        return
    fi
    if mkdir -p "$bin" && ln -sfn "$PWD/$venv/bin/claudius" "$bin/claudius"; then
        called=claudius
        say "the command is claudius (a link in ~/.local/bin)"
    else
        say "$bin cannot be written: call $called"
    fi
}

# Say how Tab completes commands in this shell, once a checkout.
name_completion() {
    if [ -e "$venv/claudius-completion" ]; then return; fi
    "$venv/bin/claudius" completion | while IFS= read -r line; do say "$line"; done
    touch "$venv/claudius-completion"
}

# Offer a model that thinks on this machine, once, where none is attached and somebody can answer.
offer_model() {
    local told answer
    if [ ! -t 0 ] || [ ! -t 2 ] || [ -e "$venv/claudius-model-asked" ]; then return; fi
    told=$("$venv/bin/claudius" model list --fits)
    if [ -z "$told" ]; then return; fi
    say "no model is attached, so the rehearsal voice speaks. One can think on this machine, without a key or an account:"
    read -r -p "setup: $told; y = yes, n = not now: " answer
    case "$answer" in
    [yY]*)
        install "${extras[@]}" home
        "$venv/bin/claudius" model get "${told%%,*}" || say "going on without it"
        ;;
    *)
        touch "$venv/claudius-model-asked"
        say "not now: $called model list shows what there is"
        ;;
    esac
}

talk() {
    local is_wanted=$1 greeting
    if [ "$is_wanted" = yes ] && [ -t 0 ] && [ -t 1 ]; then exec "$venv/bin/claudius" chat; fi
    greeting=$("$venv/bin/claudius" seed --greet) || fail "the soul could not be read: see above"
    if [ -n "$greeting" ]; then printf '%s\n' "$greeting"; fi
    if [ "$is_wanted" = no ] || [ -z "$greeting" ]; then
        say "all is ready: $called chat"
        return
    fi
    "$venv/bin/claudius" chat --once "Hello Claudius, you have just been set up. Who are you?" </dev/null || {
        local code=$?
        say "all is installed, but the first reply did not come: $called doctor says why"
        exit "$code"
    }
}

main() {
    local extras=(api discord documents images slack tools) is_talk_wanted=yes is_claude_asked=no word
    cd "$(dirname "${BASH_SOURCE[0]}")"
    venv=.venv
    called=$PWD/$venv/bin/claudius # what is typed to call Claudius; `claudius` alone once link() has put it on PATH
    if [ "${1:-}" = tools ] || [ "${1:-}" = test ]; then
        make_environment
        install api claude dev discord documents home images postgres recall slack tools
        if [ "$1" = tools ]; then return; fi
        shift
        local code=0
        # one more than there are cores: many tests wait for a process of theirs
        "$venv/bin/python" -m pytest -n $(($(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal "$@" || code=$?
        [ "$code" -eq 1 ] || exit "$code"
        say "what failed among the others is run once more, alone: a busy machine breaks deadlines, a fault stays one"
        exec "$venv/bin/python" -m pytest -n 0 --last-failed "$@"
    fi
    for word in "$@"; do
        case "$word" in
        -h | --help)
            usage
            return
            ;;
        --claude) is_claude_asked=yes ;;
        --no-talk) is_talk_wanted=no ;;
        --home) extras+=(home) ;;
        --postgres) extras+=(postgres) ;;
        *)
            usage >&2
            exit 2
            ;;
        esac
    done
    if [ "$is_claude_asked" = yes ] || is_logged_in_to_claude; then extras+=(claude); fi
    make_environment
    install "${extras[@]}"
    "$venv/bin/claudius" seed >"$venv/claudius-seed.log" 2>&1 || {
        cat "$venv/claudius-seed.log" >&2
        fail "the home could not be filled: see above"
    }
    say "the home is ${CLAUDIUS_HOME:-~/.claudius}; soul/soul.md, config.toml and .env in it are yours"
    link
    name_completion
    offer_model
    talk "$is_talk_wanted"
}

main "$@"
