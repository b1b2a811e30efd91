#!/usr/bin/env bash
# Installs the program into a folder, moves that folder, and runs what it holds from elsewhere: figure, lessons with
# their capture, manual page, completion and Python tools must be found from the moved place alone.
# Usage: tests/app/install_test.sh BUILD_FOLDER
set -euo pipefail
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install_test: $1" >&2; exit 1; }

DESTDIR=$work/staged cmake --install "$build" --prefix /usr --component program >"$work/log"
mv "$work/staged/usr" "$work/moved"
rmdir "$work/staged" || fail "the rules write outside of the prefix"
cd "$work"
share=$work/moved/share
kvscope() {
    env -i HOME="$work/home" PATH=/usr/bin:/bin LANG=C.UTF-8 ASAN_OPTIONS="${ASAN_OPTIONS:-}" TSAN_OPTIONS="${TSAN_OPTIONS:-}" \
        "$work/moved/bin/kvscope" "$@"
}

kvscope --version | grep -qx 'kvscope [0-9.]*' || fail "kvscope --version"
kvscope plot key_projection "$share/kvscope/sample_data/needle-1k.h5" --policy keydiff@0.1 --out keys.svg >/dev/null
grep -q '<svg' keys.svg || fail "no figure"

# One of the program's own lessons, with the capture that it names.
[ "$(find "$share/kvscope/resources/lessons" -name '*.kvscope' | wc -l)" -ge 12 ] || fail "lessons are missing"
find "$share/kvscope/resources/lessons" -name '*.kvscope' ! -name keydiff.kvscope -delete
kvscope handout --out lesson.pdf >/dev/null
[ "$(head -c 5 lesson.pdf)" = %PDF- ] || fail "no handout of the program's own lesson"

grep -q '^\.TH KVSCOPE 1' "$share/man/man1/kvscope.1" || fail "no manual page"
bash -n "$share/bash-completion/completions/kvscope" || fail "the completion is no bash"
grep -q '^#compdef kvscope' "$share/zsh/vendor-completions/_kvscope" || fail "no completion for zsh"
grep -q 'complete -c kvscope' "$share/fish/vendor_completions.d/kvscope.fish" || fail "no completion for fish"
tar tzf "$share/kvscope/kvscope_tools.tar.gz" >tools
grep -qx kvscope_capture/command.py tools || fail "no Python tools"
said=$(kvscope capture 2>&1) && fail "kvscope capture is no command of the program"
[[ $said == *"pip install $share/kvscope/kvscope_tools.tar.gz"* ]] || fail "the Python tools are not named: $said"

for part in icons/hicolor/scalable/apps/kvscope.svg mime/packages/kvscope.xml applications/kvscope.desktop; do
    [ -s "$share/$part" ] || fail "no $part"
done
if command -v desktop-file-validate >/dev/null; then desktop-file-validate "$share/applications/kvscope.desktop"; fi
