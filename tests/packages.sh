#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what a set of commands needs and this machine lacks (Debian, Ubuntu), and says so.  With
# --print it installs nothing: it prints the command that would, and fails.
# usage: packages.sh [--print] SET...      sets: build check wheels whole portable deb new-user mpi bench clang afl linear static clients, and folders of tests/clients
set -eu
only_print=
[ "${1:-}" != --print ] || { only_print=1; shift; }

# one row: set, test that it is there, Debian package
rows() {
	cat <<-'ROWS'
	build   command:gcc              gcc
	build   header:stdio.h           libc6-dev
	build   header:archive.h         libarchive-dev
	build   header:cjson/cJSON.h     libcjson-dev
	build   header:zlib.h            zlib1g-dev
	build   header:protobuf-c/protobuf-c.h  libprotobuf-c-dev
	build   command:protoc-c         protobuf-c-compiler
	build   header:sqlite3.h         libsqlite3-dev
	check   command:python3          python3
	check   command:file             file
	check   command:nm               binutils
	check   command:clang-format     clang-format
	whole   command:g++              g++
	whole   command:pkg-config       pkg-config
	whole   command:groff            groff-base
	whole   python:ensurepip         python3-venv
	wheels  python:ensurepip         python3-venv
	portable python:ensurepip        python3-venv
	portable command:dpkg-source     dpkg-dev
	portable command:tclsh           tcl
	deb     command:dpkg-shlibdeps   dpkg-dev
	new-user command:debootstrap     debootstrap
	mpi     command:mpicc            libopenmpi-dev
	mpi     command:mpirun           openmpi-bin
	bench   command:bc               bc
	bench   header:isa-l.h           libisal-dev
	bench   header:simdjson.h        libsimdjson-dev
	bench   command:python3          python3
	bench   command:lttng            lttng-tools
	bench   header:lttng/tracepoint.h  liblttng-ust-dev
	linear  command:valgrind         valgrind
	static  command:clang-tidy       clang-tidy
	static  command:cppcheck         cppcheck
	clang   command:clang            clang
	clang   clang:-fsanitize=address libclang-rt-dev
	afl     command:afl-clang-fast   afl++
	clients command:python3          python3
	clients python:ensurepip         python3-venv
	clients command:node             nodejs
	clients command:chromium         chromium
	clients command:pdftotext        poppler-utils
	frameworks file:/usr/lib/python3/dist-packages/torch  python3-torch
	flame    command:go              golang-go
	perfetto file:/usr/lib/javascript/webcomponentsjs-custom-element-v0/CustomElements.js  libjs-webcomponentsjs-custom-element-v0
	ROWS
}
is_there() {
	case $1 in
	command:*) command -v "${1#command:}" >/dev/null 2>&1 ;;
	file:*)    [ -e "${1#file:}" ] ;;
	header:*)  [ -e "/usr/include/${1#header:}" ] || [ -e "/usr/local/include/${1#header:}" ] ||
		   echo "#include <${1#header:}>" | ${CC:-cc} -E - >/dev/null 2>&1 ;;
	clang:*)   echo 'int main(void) { return 0; }' | clang "${1#clang:}" -x c -o /dev/null - >/dev/null 2>&1 ;;
	python:*)  python3 -c "import ${1#python:}" >/dev/null 2>&1 ;;
	esac
}
missing=$(for set in "$@"; do
	rows | while read -r of what package; do
		[ "$of" = "$set" ] || continue
		is_there "$what" || echo "$package"
	done
done | sort -u | tr '\n' ' ')
[ -n "$missing" ] || exit 0

echo "missing here: $missing" >&2
if ! command -v apt-get >/dev/null 2>&1; then
	echo "install the equivalents of these Debian packages, then try again" >&2
	exit 1
fi
if [ -n "$only_print" ]; then
	echo "install it and try again:  apt-get install $missing" >&2
	echo "(make demo and make check do so by themselves)" >&2
	exit 1
fi
as_root=
[ "$(id -u)" = 0 ] || as_root="sudo -n"
echo "installing with apt-get" >&2
{ $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	$as_root apt-get install -y -qq --no-install-recommends $missing; } >/dev/null ||
	{ echo "could not install; as root: apt-get install $missing" >&2; exit 1; }
