#!/usr/bin/env bash
# Draws the manual's pictures again, each with the command above it. Look at them before they are committed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cmake --build "$root/build/release" --target kvscope app_tests
KVSCOPE_UPDATE_MANUAL=1 "$root/build/release/tests/app_tests" manual_test everyCommandRuns
git -C "$root" status --short resources/manual/pictures
