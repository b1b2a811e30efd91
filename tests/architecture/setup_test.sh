#!/usr/bin/env bash
# What resources/dev/setup.sh does where packages are missing, with package tools that only pretend: a required package
# that cannot be installed ends it with the names to install, an optional one does not.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "setup_test: $1: $(cat "$work/said")" >&2; exit 1; }

mkdir -p "$work/resources/dev" "$work/bin"
cp "$root/resources/dev/setup.sh" "$work/resources/dev/"
printf 'required  # a comment\noptional?\nunheard?\n' >"$work/resources/dev/packages.txt"
pretend() { # a program that runs the given line of bash
    printf '#!/bin/bash\n%s\n' "$2" >"$1"
    chmod +x "$1"
}
pretend "$work/resources/dev/nanobind.sh" 'exit 77'
pretend "$work/bin/id" 'echo "$USER_ID"'
pretend "$work/bin/sudo" 'echo "sudo: a password is required" >&2; exit 1'
pretend "$work/bin/dpkg-query" '[[ " $INSTALLED " != *" ${*: -1} "* ]] || echo install ok installed'
pretend "$work/bin/apt-cache" '[ "$2" = unheard ] || echo "$2 | 1.0"'
pretend "$work/bin/apt-get" 'echo "apt-get $*" >>"$LOG"; [ "$1" = update ] || [[ " $* " != *" $BROKEN "* ]]'
pretend "$work/bin/cmake" 'echo "cmake $*" >>"$LOG"'

# setup USER_ID INSTALLED BROKEN: its exit code
setup() {
    local code=0
    : >"$work/log"
    env PATH="$work/bin:$PATH" LOG="$work/log" USER_ID="$1" INSTALLED="$2" BROKEN="$3" \
        "$work/resources/dev/setup.sh" >"$work/said" 2>&1 || code=$?
    return $code
}
built() { grep -q 'cmake --build' "$work/log"; }

setup 0 "" none || fail "not built"
built && grep -q 'install .* required' "$work/log" && grep -q 'install .* optional' "$work/log" || fail "not installed"
! grep -q unheard "$work/log" "$work/said" || fail "a package that apt does not know is installed or named"

setup 1000 required none || fail "stopped over an optional package, without sudo"
built && grep -q 'Left out: optional' "$work/said" || fail "the optional package is not named"
setup 0 required optional || fail "stopped over an optional package"
built || fail "not built"

for case in "1000 none" "0 required"; do
    read -r user broken <<<"$case"
    setup "$user" "" "$broken" && fail "went on without a required package"
    built && fail "built without a required package"
    grep -q 'Install these packages first: required$' "$work/said" || fail "the required package is not named"
done
