#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gcc -fanalyzer, clang-tidy and cppcheck over all C files of the house; no finding is left.
# usage: B=BUILD static.sh [FILE...]
#
# Left out for all files, and why (single findings are answered in static_known.py, one by one):
#   analyzer-malloc-leak, -file-leak, -fd-leak   gcc 12 does not follow what a struct owns; leaks are
#                        looked for by LeakSanitizer in every test (make check SAN=1)
#   cppcheck's invalidFunctionArg   its posix.cfg does not know that mmap() takes -1 with MAP_ANONYMOUS
#   cppcheck's readdirCalled        readdir() on a DIR of one's own is thread-safe in glibc
#   cppcheck's preprocessorErrorDirective   protoc-c's version guard, which it cannot evaluate
#   cppcheck's ctunullpointer       crosses files without knowing which arguments go together
set -u
B=${B:-build}
LC_ALL=C.UTF-8 # gcc's quotes are of the locale, and static_known.py has them
export B LC_ALL
folder=$B/static
common="-std=c11 -D_GNU_SOURCE -I. -I$B -DTACHO_VERSION=\"0\" -pthread"
# The file that defines fail() cannot have it as a macro.
model() {
	case $1 in schemas/base/status.c | schemas/base/vec.c) ;; *) echo "-include tests/limits/model.h" ;; esac
}
one_gcc() {
	[ "$1" != analyze/cli/mpi_plugin.c ] || return 0 # needs MPI's headers
	gcc $common $(model "$1") -O1 -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-file-leak \
		-Wno-analyzer-fd-leak -Wno-analyzer-too-complex -c -o /dev/null "$1" 2>&1 |
		grep -E 'warning:|error:'
}
one_tidy() {
	[ "$1" != analyze/cli/mpi_plugin.c ] || return 0
	# how far paths are followed: all findings there were came long before
	clang-tidy --quiet --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang \
		--extra-arg=max-nodes=40000 "$1" -- $common $(model "$1") 2>/dev/null |
		grep -E 'warning:|error:' | sed "s|$PWD/||"
}
# `static.sh --one TOOL FILE` is what xargs calls.
if [ "${1:-}" = --one ]; then
	"one_$2" "$3"
	exit 0
fi

mkdir -p "$folder"
[ $# -gt 0 ] || set -- $(find schemas collector convert analyze samples -name '*.c' | sort)
for proto in schemas/proto/*.proto; do
	make -s B="$B" "$B/${proto%.proto}.pb-c.h" || exit 1
done
cores=$(nproc)
rm -f "$folder"/*.out

for tool in gcc tidy; do
	printf '%s\n' "$@" | xargs -P "$cores" -n 1 sh "$0" --one "$tool" >"$folder/$tool.out"
done
cppcheck -j "$cores" --enable=warning,portability --std=c11 --inline-suppr --library=posix -I. "-I$B" \
	-D_GNU_SOURCE --quiet --suppress=missingIncludeSystem --suppress=invalidFunctionArg \
	--suppress=readdirCalled --suppress=preprocessorErrorDirective --suppress=ctunullpointer \
	--suppress='*:*pb-c*' --template='{file}:{line}: warning: {message} [{id}]' "$@" \
	>"$folder/cppcheck.out" 2>&1
python3 tests/limits/static_known.py "$folder" $#
