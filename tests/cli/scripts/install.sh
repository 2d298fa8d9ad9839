#!/bin/sh
# make install into folders with blanks and quotes, and make uninstall, which leaves other people's files.
set -u
root=$(cd "$scripts/../../.." && pwd)
for prefix in '/opt/t c' "/it's"; do
	dest="$scratch/a b"
	# what is built is installed as it is
	run() { MAKEFLAGS='' make -s -C "$root" -o all -o man MPICC='' B="$bin" DESTDIR="$dest" PREFIX="$prefix" "$1"; }
	run install || echo "install: $?"
	"$dest$prefix/bin/tacho-convert" --version | head -n 1 | cut -d' ' -f1
	(cd "$dest$prefix" && ls bin include lib/libtacho* share/man/man1 share/bash-completion/completions share/zsh/site-functions)
	grep -h -e '^prefix' -e '^Libs' "$dest$prefix/lib/pkgconfig/tacho.pc"
	echo mine >"$dest$prefix/bin/other"
	echo mine >"$dest$prefix/share/doc/tacho/mine"
	echo mine >"$scratch/a"
	run uninstall || echo "uninstall: $?"
	(cd "$dest" && find . -type f -o -type l)
	cat "$scratch/a"
	rm -rf "$dest" "$scratch/a"
done
