#!/bin/sh
# Starts the program. Libraries that must fit this machine's drivers and fonts are its own; those that it lacks, as a
# server may, are taken from lib/if-missing.
top=$(dirname "$(dirname "$(readlink -f "$0")")")
known=$(/sbin/ldconfig -p 2>/dev/null)
for folder in "$top"/lib/if-missing/*; do
    case $known in
    *"${folder##*/} "*) ;;
    *) LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder && export LD_LIBRARY_PATH ;;
    esac
done
[ -e /etc/fonts/fonts.conf ] || export FONTCONFIG_FILE="${FONTCONFIG_FILE:-$top/lib/fonts.conf}"
exec "$top/libexec/kvscope" "$@"
