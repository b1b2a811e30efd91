#!/usr/bin/env bash
# Tries the packages of resources/dev/package.sh in fresh roots, which hold a bare Debian and nothing of the build: installed,
# used as a person does, looked at by lintian, removed. Pictures of the windows come into the packages' folder.
# Needs root and mmdebstrap. The mirror is that of this machine's apt. The roots lie in memory (2 GB); KVSCOPE_ROOTS names
# another folder and keeps them for the next time. KVSCOPE_LIVE_PACKAGES names the site-packages of a Python of this Debian's
# version with torch, Transformers and h5py, gigabytes that are not fetched for this: then `kvscope live` is tried, too.
# Usage: resources/dev/package_test.sh FOLDER [deb | archive] [SUITE] (both, then the archive on Debian 13)
# A SUITE that is not Debian's, such as Ubuntu's noble, needs a bare root of its own: SUITE.tar in KVSCOPE_ROOTS.
set -euo pipefail
packages=$(realpath "$1")
roots=${KVSCOPE_ROOTS:-$(mktemp -d -p /dev/shm)}
[ -n "${KVSCOPE_ROOTS:-}" ] || trap 'rm -rf "$roots"' EXIT
command -v mmdebstrap >/dev/null && [ "$(id -u)" = 0 ] || { echo "Needs root, and: apt install mmdebstrap" >&2; exit 1; }

# fresh SUITE NAME: a root of Debian's essential packages and apt.
fresh() {
    mkdir -p "$roots"
    if [ ! -e "$roots/$1.tar" ]; then
        local own
        own=$(. /etc/os-release && echo "$VERSION_CODENAME")
        { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } | sed "s/\b$own/$1/g" >"$roots/$1.sources"
        TMPDIR=$roots mmdebstrap --quiet --variant=minbase --include=ca-certificates "$1" "$roots/part.tar" "$roots/$1.sources"
        mv "$roots/part.tar" "$roots/$1.tar"
    fi
    rm -rf "${roots:?}/$2"
    mkdir -p "$roots/$2"
    tar -C "$roots/$2" -xf "$roots/$1.tar"
    echo force-unsafe-io >"$roots/$2/etc/dpkg/dpkg.cfg.d/in-memory"
    chroot "$roots/$2" useradd --create-home reader
}
# within NAME COMMANDS: runs commands as root in a root, with /proc mounted, by which the program finds itself.
within() {
    unshare --mount --pid --fork bash -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" &&
        { [ -z "$2" ] || { mkdir -p "$0/opt/packages" && mount --bind "$2" "$0/opt/packages"; }; } &&
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive chroot "$0" bash -euo pipefail -c "$1"' \
        "$roots/$1" "$2" "${KVSCOPE_LIVE_PACKAGES:-}"
}
reading() { within "$1" "cat >/tmp/commands; exec su - reader -c 'LANG=C.UTF-8 bash -euo pipefail /tmp/commands'"; } # commands on stdin
say() { echo "== $*"; }

# What the README promises, in a home folder, without a display. $1 root, $2 program, $3 its share folder
main_job() {
    reading "$1" <<COMMANDS
kvscope=$2 sample=$3/sample_data/needle-1k.h5
time \$kvscope --version
\$kvscope inspect \$sample | head -3
time \$kvscope plot key_projection \$sample --layer 3 --kv-head 1 --policy keydiff@0.1 --out keys.pdf
\$kvscope plot curves \$sample --layer 3 --kv-head 1 --policy keydiff@0.25 snapkv@0.25 --out curves.svg 2>errors
cat errors && test ! -s errors
\$kvscope plot token_strip \$sample --layer 3 --kv-head 1 --policy keydiff@0.1 --out strip.png
\$kvscope evict \$sample --policy keydiff:kvpress@0.1 --out kept.json
\$kvscope measure \$sample --policy snapkv@0.1 --metrics output_error,retained_mass --out fidelity.csv
\$kvscope handout $3/resources/lessons/keydiff.kvscope --out lesson.pdf
\$kvscope --engine torch policies >/dev/null
\$kvscope evict \$sample --policy keydiff@0.1 --engine torch --out no.json && exit 1
ls -l ~ && test ! -e no.json
COMMANDS
}
# The window under a virtual display, once its picture is there. $1 root, $2 program, $3 picture
window() {
    within "$1" 'apt-get install -qq --no-install-recommends xvfb xauth xdotool imagemagick libgl1-mesa-dri >/dev/null'
    reading "$1" <<COMMANDS
xvfb-run -a -s "-screen 0 1440x900x24 +extension GLX" bash -euo pipefail -c '
    $2 & started=\$!
    for second in \$(seq 60); do ! xdotool search --onlyvisible --class kvscope >/dev/null 2>&1 || break; sleep 2; done
    for second in \$(seq 60); do # until the picture is the same twice
        sleep 2; import -window root shown.png; new=\$(convert shown.png rgb:- | md5sum)
        [ "\$new" != "\${old:-}" ] || break; old=\$new
    done
    kill -0 \$started && kill \$started'
COMMANDS
    cp "$roots/$1/home/reader/shown.png" "$3"
}

# Answers of the packaged model, by the packaged tools. $1 root, $2 program, $3 its share folder
live() {
    within "$1" 'apt-get install -qq --no-install-recommends python3 >/dev/null'
    reading "$1" <<COMMANDS
! $2 live $3/sample_data/tinylm --python python3 --text $3/sample_data/genesis.txt --question Who --answer God --policy keydiff@0.5 2>errors
cat errors && grep -q 'no module kvscope_live' errors
mkdir tools && tar -C tools -xf $3/kvscope_tools.tar.gz
head -c 2000 $3/sample_data/genesis.txt >text
test ! -e /opt/packages/torch || time $2 live $3/sample_data/tinylm --python "env PYTHONPATH=\$PWD/tools:/opt/packages python3" \
    --text text --question 'In the beginning God created' --answer ' the heaven' --policy keydiff@0.5 --policy snapkv@0.5 --out answers.json
ls -l answers.json || test ! -e /opt/packages/torch
COMMANDS
}

try_deb() {
    local suite=$1 root=deb-$1
    say "the .deb on $suite"
    fresh "$suite" "$root"
    cp "$packages"/kvscope_*.deb "$roots/$root/tmp/kvscope.deb"
    within "$root" 'apt-get update -qq; time apt-get install -qq --no-install-recommends /tmp/kvscope.deb >/dev/null; du -sh --apparent-size /usr/share/kvscope /usr/bin/kvscope'
    main_job "$root" kvscope /usr/share/kvscope
    live "$root" kvscope /usr/share/kvscope
    window "$root" kvscope "$packages/deb-$suite.png"
    within "$root" 'apt-get install -qq --no-install-recommends man-db groff bash-completion desktop-file-utils shared-mime-info xdg-utils \
        libfile-mimeinfo-perl libglib2.0-bin lintian >/dev/null'
    reading "$root" <<'COMMANDS'
man kvscope | grep -m1 "KV-cache"
test -z "$(man --warnings -E UTF-8 kvscope 2>&1 >/dev/null)"
desktop-file-validate /usr/share/applications/kvscope.desktop
bash -c 'source /usr/share/bash-completion/bash_completion; _completion_loader kvscope; complete -p kvscope'
cp /usr/share/kvscope/sample_data/*.h5 /usr/share/kvscope/resources/lessons/keydiff.kvscope .
kvscope synth --tokens 256 --out synthetic.h5
printf '\211HDF\r\n\032\nanything else' >other.h5
for desktop in X-Generic GNOME; do # by mimetype and by gio
    export XDG_CURRENT_DESKTOP=$desktop
    for file in needle-1k.h5 synthetic.h5; do test "$(xdg-mime query filetype $file)" = application/x-kvscope-capture; done
    test "$(xdg-mime query filetype keydiff.kvscope)" = application/x-kvscope-session
    test "$(xdg-mime query filetype other.h5)" = application/x-hdf
done
for type in application/x-kvscope-capture application/x-kvscope-session; do test "$(xdg-mime query default $type)" = kvscope.desktop; done
lintian --fail-on error,warning --tag-display-limit 0 /tmp/kvscope.deb
COMMANDS
    within "$root" 'apt-get purge -qq kvscope >/dev/null; left=$(find / -xdev -name "*kvscope*" -not -path "/proc/*" -not -path "/home/*" -not -path "/tmp/*"); test -z "$left" || { echo "left behind: $left"; exit 1; }'
}

try_archive() {
    local suite=$1 root=archive-$1
    say "the archive on $suite"
    fresh "$suite" "$root"
    tar -C "$roots/$root/home/reader" --no-same-owner -xf "$packages"/kvscope-*.tar.xz
    reading "$root" <<<'mkdir "a place"; cp -r kvscope-*/* "a place"; du -sh "a place"; ln -s "a place/bin/kvscope" kvscope; ln -s "a place/share/kvscope" share'
    main_job "$root" ./kvscope share
    within "$root" 'apt-get update -qq'
    window "$root" ./kvscope "$packages/archive-$suite.png"
}

own=$(. /etc/os-release && echo "$VERSION_CODENAME")
what=${2:-all}
[ "$what" = archive ] || try_deb "${3:-$own}"
[ "$what" = deb ] || try_archive "${3:-$own}"
[ "$what" != all ] || try_archive trixie
say "all tried; the pictures of the windows are in $packages"
