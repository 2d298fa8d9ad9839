#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds libtacho.so and the tools for machines with an older C library than this one, for
# `make wheel GLIBC=2.28`.  The compiler is PyPI's ziglang, which brings headers and symbols of every
# glibc; the libraries of the tools are built from Debian's source packages and linked statically, as
# those of this machine need its own glibc.
# usage: portable.sh GLIBC FOLDER      needs the network, python3-venv, dpkg-dev, make and tclsh
set -eu
glibc=$1
mkdir -p "$2"
at=$(cd "$2" && pwd)
here=$(pwd)
machine=$(uname -m)

[ -x "$at/venv/bin/python" ] || python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check ziglang==0.17.1
export ZIG_GLOBAL_CACHE_DIR="$at/cache" ZIG_LOCAL_CACHE_DIR="$at/cache"
cat >"$at/cc" <<CC
#!/bin/sh
exec "$at/venv/bin/python" -m ziglang cc -target $machine-linux-gnu.$glibc "\$@"
CC
cat >"$at/ar" <<AR
#!/bin/sh
exec "$at/venv/bin/python" -m ziglang ar "\$@"
AR
chmod +x "$at/cc" "$at/ar"

# Lists of their own, so that the sources of this machine's apt stay as they are.  apt compares what
# it downloads with the signed lists.
sources() {
	mkdir -p "$at/src/lists/partial"
	cd "$at/src"
	echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"http://deb.debian.org/debian bookworm main" >sources.list
	apt="apt-get -qq -o APT::Sandbox::User=root -o Dir::State::Lists=$at/src/lists
		-o Dir::Etc::SourceList=$at/src/sources.list -o Dir::Etc::SourceParts=/dev/null"
	$apt update
	$apt source --download-only zlib bzip2 lz4 libzstd xz-utils libarchive cjson protobuf-c sqlite3
	for source in *.dsc; do
		dpkg-source --no-check -x "$source" >/dev/null
	done
}

# library NAME FOLDER FLAGS FILE...: compiles the files in the folder and packs them as libNAME.a
library() {
	name=$1 folder=$2 flags=$3
	shift 3
	mkdir -p "$at/obj/$name"
	for file in "$@"; do
		(cd "$at"/src/$folder && "$at/cc" -O2 -fPIC -w $flags -I. -c "$file" \
			-o "$at/obj/$name/$(echo "${file%.c}" | tr / _).o")
	done
	rm -f "$at/lib/lib$name.a"
	"$at/ar" rcs "$at/lib/lib$name.a" "$at/obj/$name"/*.o
}
# inside FOLDER PATTERN...: the files there
make="make -s ACLOCAL=: AUTOCONF=: AUTOHEADER=: AUTOMAKE=:"
inside() { (cd "$at"/src/$1 && shift && ls $*); }
headers() { for header in "$@"; do cp "$at"/src/$header "$at/include/"; done; }
# configured FOLDER OPTION...: a library with a configure script, which knows the C library's functions.
# Debian's patches make files look older than what was generated from them: nothing is generated anew.
configured() {
	cd "$at"/src/$1
	shift
	./configure --quiet --host=$machine-linux-gnu --prefix="$at" --libdir="$at/lib" \
		--disable-shared --enable-static --with-pic CC="$at/cc" AR="$at/ar" RANLIB=true \
		CFLAGS="-O2 -w" CPPFLAGS="-I$at/include" LDFLAGS="-L$at/lib" "$@" >/dev/null
}

libraries() {
	mkdir -p "$at/lib" "$at/include/cjson" "$at/include/protobuf-c"
	library z 'zlib-1*' "-DHAVE_UNISTD_H -D_LARGEFILE64_SOURCE" $(inside 'zlib-1*' *.c)
	headers 'zlib-1*/zlib.h' 'zlib-1*/zconf.h'
	library bz2 'bzip2-1*' -D_FILE_OFFSET_BITS=64 blocksort.c huffman.c crctable.c randtable.c \
		compress.c decompress.c bzlib.c
	headers 'bzip2-1*/bzlib.h'
	library lz4 'lz4-1*/lib' "" lz4.c lz4hc.c lz4frame.c xxhash.c
	headers 'lz4-1*/lib/lz4*.h'
	library zstd 'libzstd-1*/lib' -DZSTD_DISABLE_ASM \
		$(inside 'libzstd-1*/lib' common/*.c compress/*.c decompress/*.c)
	headers 'libzstd-1*/lib/zstd.h' 'libzstd-1*/lib/zstd_errors.h'
	library cjson 'cjson-1*' "" cJSON.c
	library protobuf-c 'protobuf-c-1*' "" protobuf-c/protobuf-c.c
	cp "$at"/src/cjson-1*/cJSON.h "$at/include/cjson/"
	cp "$at"/src/protobuf-c-1*/protobuf-c/protobuf-c.h "$at/include/protobuf-c/"
	configured 'xz-utils-5*' --disable-xz --disable-xzdec --disable-lzmadec --disable-lzmainfo \
		--disable-scripts --disable-doc --disable-nls
	$make -C "$at"/src/xz-utils-5*/src/liblzma install >/dev/null
	configured 'libarchive-3*' --disable-bsdtar --disable-bsdcpio --disable-bsdcat --disable-acl \
		--disable-xattr --without-xml2 --without-expat --without-nettle --without-openssl
	$make -C "$at"/src/libarchive-3* install-libLTLIBRARIES install-includeHEADERS >/dev/null
	# SQLite is published as one file that its own script makes of the sources.
	configured 'sqlite3-3*' --disable-tcl --disable-readline
	$make -C "$at"/src/sqlite3-3* sqlite3.c >/dev/null
	library sqlite3 'sqlite3-3*' "-DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION" sqlite3.c
	headers 'sqlite3-3*/sqlite3.h'
}

# `set -e` has no effect beside && or ||.
if [ ! -f "$at/src/.got" ]; then
	(sources)
	touch "$at/src/.got"
fi
if [ ! -f "$at/lib/.made" ]; then
	libraries
	touch "$at/lib/.made"
fi
cd "$here"
exec make B="$at/build" CC="$at/cc" ISAL= MPICC= CFLAGS="-isystem $at/include" LDFLAGS="-L$at/lib" \
	TOOLS_LIBS="-larchive -lcjson -lprotobuf-c -lsqlite3 -lzstd -llzma -llz4 -lbz2 -lz -lm -ldl -lpthread" \
	"$at/build/libtacho.so" "$at/build/tacho-record" "$at/build/tacho-convert" "$at/build/tacho-analyze"
