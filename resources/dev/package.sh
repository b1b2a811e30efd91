#!/usr/bin/env bash
# Builds the packages into build/package: the .deb (CPack, resources/dev/install.cmake) and, for other distributions, an
# archive that runs where it is unpacked. Neither holds the LibTorch engine: it is bound to gigabytes of LibTorch and CUDA.
# With --test both are tried in fresh roots, which takes minutes and needs root (resources/dev/package_test.sh).
# KVSCOPE_PACKAGE_BUILD names a build folder whose program is taken as it is. Usage: resources/dev/package.sh [--test]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${KVSCOPE_PACKAGE_BUILD:-}
if [ -z "$build" ]; then
    "$root/resources/dev/setup.sh" release "" kvscope
    build=$root/build/release
fi
for tool in dpkg-shlibdeps patchelf; do
    command -v $tool >/dev/null || { echo "Install what the packages are made with: apt install dpkg-dev patchelf" >&2; exit 1; }
done
out=$root/build/package
rm -rf "$out"
mkdir -p "$out"

(cd "$out" && cpack --config "$build/CPackConfig.cmake" -B "$out" >"$out/log" || { cat "$out/log" >&2; exit 1; })
rm -rf "$out/_CPack_Packages"

# The archive. bin/kvscope is a script that starts libexec/kvscope, which finds its libraries in ../lib.
version=$(sed -n 's/^set(CPACK_PACKAGE_VERSION "\(.*\)")/\1/p' "$build/CPackConfig.cmake")
name=kvscope-$version-linux-$(uname -m)
top=$out/$name
cmake --install "$build" --prefix "$top" --component program --strip >>"$out/log"
mkdir -p "$top/libexec" "$top/lib/plugins" "$top/lib/if-missing" "$top/share/doc/kvscope/libraries"
mv "$top/bin/kvscope" "$top/libexec/kvscope"
cp "$root/resources/package/start.sh" "$top/bin/kvscope"
cp "$root/resources/package/fonts.conf" "$top/lib/"
cp "$root/resources/package/README.md" "$root/LICENSE" "$top/"
cp "$root/resources/package/copyright" "$top/share/doc/kvscope/"
printf '[Paths]\nPlugins = ../lib/plugins\n' >"$top/libexec/qt.conf"
patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" "$top/libexec/kvscope" # RPATH holds for plugins, too; RUNPATH does not

plugins=$(ldconfig -p | sed -n 's#.*=> \(.*\)/libQt6Core\.so\.6$#\1/qt6/plugins#p' | head -1)
for plugin in platforms/libqxcb platforms/libqoffscreen platforms/libqminimal xcbglintegrations/libqxcb-glx-integration \
    xcbglintegrations/libqxcb-egl-integration platforminputcontexts/libcomposeplatforminputcontextplugin \
    platforminputcontexts/libibusplatforminputcontextplugin iconengines/libqsvgicon imageformats/libqsvg; do
    mkdir -p "$top/lib/plugins/${plugin%/*}"
    cp "$plugins/$plugin.so" "$top/lib/plugins/$plugin.so"
done

# glibc is the machine's. Libraries that must fit its drivers, fonts and compiler are taken from it, too, and from
# if-missing only where it has none, as on a server.
machines='^(libGL.*|libOpenGL|libEGL|libdrm|libgbm|libX11|libX11-xcb|libxcb|libXau|libXdmcp|libbsd|libmd|libfontconfig|libfreetype|libexpat|libz|libstdc\+\+|libgcc_s)\.so\.'
never='^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv)\.so\.'
find "$top/lib/plugins" -name '*.so' -exec ldd "$build/bin/kvscope" {} + | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | sort -u |
    while read -r library path; do
        [[ ! $library =~ $never ]] || continue
        folder=$top/lib
        if [[ $library =~ $machines ]]; then # each in a folder of its own, so that each can be named alone
            folder=$top/lib/if-missing/$library
            mkdir -p "$folder"
        fi
        cp -L "$path" "$folder/$library"
        echo "*/$(basename "$(readlink -f "$path")")"
    done | xargs dpkg -S | cut -d: -f1 | sort -u |
    while read -r owner; do cp "/usr/share/doc/$owner/copyright" "$top/share/doc/kvscope/libraries/$owner.txt"; done
# The newest glibc that any of them asks for is what a machine must have.
needs=$(find "$top" -type f \( -name '*.so*' -o -path '*/libexec/kvscope' \) -exec objdump -T {} + | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -1)
sed -i "s/@GLIBC@/${needs#GLIBC_}/; s/@NAME@/$name/" "$top/README.md"
tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$name" | xz -T0 -4 >"$out/$name.tar.xz"
rm -rf "$top" "$out/log"
ls -l "$out"
[ "${1:-}" != --test ] || exec "$root/resources/dev/package_test.sh" "$out"
