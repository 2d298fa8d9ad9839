#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packs what `make install` installs as a Debian package, for `make deb`.
# usage: deb.sh MAKE FOLDER VERSION      needs dpkg-dev; DEBFULLNAME and DEBEMAIL: who made it
set -eu
make=$1
work=$2
version=$3
arch=$(dpkg --print-architecture)
root=$work/root
doc=$root/usr/share/doc/tacho
rm -rf "$root" "$work/debian"
mkdir -p "$root/DEBIAN" "$work/debian"

# The tools find their libraries by the system's path alone, not beside them as in a wheel.
$make --no-print-directory B="$work/build" BESIDE= DESTDIR="$(pwd)/$root" PREFIX=/usr \
	LIBDIR=/usr/lib ZSHDIR=/usr/share/zsh/vendor-completions install >"$work/log" ||
	{ cat "$work/log"; exit 1; }

# Rules of Debian: no symbols, packed pages, the licence in the file copyright, examples in a folder of
# that name.
for file in "$root"/usr/bin/* $(find "$root/usr/lib" -name '*.so*' -type f); do
	strip --strip-unneeded --remove-section=.comment --remove-section=.note "$file"
done
gzip -9n "$root"/usr/share/man/man1/*.1
mv "$doc/samples" "$doc/examples"
mkdir "$root/usr/share/pkgconfig"
mv "$root/usr/lib/pkgconfig/tacho.pc" "$root/usr/share/pkgconfig/"
rmdir "$root/usr/lib/pkgconfig"
rm "$doc/LICENSE"
find "$root/usr/lib" -name '*.so*' -type f -exec chmod 644 {} +
date=$(date -u -R -d "@${SOURCE_DATE_EPOCH:-$(stat -c %Y VERSION)}")
maintainer="${DEBFULLNAME:-The authors of Tacho} <${DEBEMAIL:-$(id -un)@$(hostname -f)}>"
gzip -9n >"$doc/changelog.gz" <<CHANGELOG
tacho ($version) unstable; urgency=medium

  * The version of this name.

 -- $maintainer  $date
CHANGELOG
cat >"$doc/copyright" <<'COPYRIGHT'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tacho

Files: *
Copyright: 2026 the authors of Tacho
License: Apache-2.0
 On Debian systems, the text of the licence is in /usr/share/common-licenses/Apache-2.0.
COPYRIGHT

# The package is for programs that are recorded, not for programs that are linked against the library:
# one package has all of it.
mkdir -p "$root/usr/share/lintian/overrides"
cat >"$root/usr/share/lintian/overrides/tacho" <<'OVERRIDES'
# The library is loaded into programs by tacho-record; a second package for it would be of no use.
tacho: package-name-doesnt-match-sonames libtacho1
tacho: link-to-shared-library-in-wrong-package *
tacho: no-symbols-control-file *
# It is no part of Debian.
tacho: initial-upload-closes-no-bugs *
OVERRIDES

printf 'Source: tacho\n\nPackage: tacho\nArchitecture: any\n' >"$work/debian/control"
depends() { # FIELD FILE...: the packages whose libraries the files need
	field=$1
	shift
	[ ! -f "$work/$1" ] || (cd "$work" && dpkg-shlibdeps --ignore-missing-info -O "-d$field" "$@" |
		sed -n "s/^shlibs:$field=/$field: /p")
}
{
	cat <<-CONTROL
	Package: tacho
	Version: $version
	Architecture: $arch
	Maintainer: $maintainer
	Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
	Section: devel
	Priority: optional
	CONTROL
	depends Depends root/usr/bin/tacho-convert root/usr/bin/tacho-analyze root/usr/bin/tacho-record
	depends Recommends root/usr/lib/tacho/libtacho-mpi.so
	cat <<-'CONTROL'
	Suggests: python3
	Description: recorder, converter and reports for training jobs on GPUs
	 tacho-record records what a training program does on host and GPUs into a
	 compact log; tacho-convert turns logs and files of PyTorch's profiler, XProf
	 and Nsight Systems into the formats of Perfetto, TensorBoard, SQLite and
	 others; and tacho-analyze says where the time went and what to change first.
	CONTROL
} >"$root/DEBIAN/control"
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
echo "libtacho 1 tacho" >"$root/DEBIAN/shlibs"
find "$root" -type d -exec chmod 755 {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "$work/tacho_${version}_$arch.deb" >/dev/null
echo "$work/tacho_${version}_$arch.deb"
