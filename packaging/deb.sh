#!/bin/sh
# deb.sh [FOLDER]: the Debian source package, the packages that come of it, and what lintian says, in
# FOLDER (build/deb). From what is committed. Needs debhelper, dpkg-dev and lintian, and what
# packages.txt names; DEB_BUILD_OPTIONS=nocheck leaves the tests out.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/deb}
version=$(sed -n 's/.*define DBO_VERSION_[A-Z]* //p' core/base/version.h | paste -s -d .)
tree=$out/dbo-$version
rm -rf "$tree"
mkdir -p "$out"
git archive --format=tar --prefix="dbo-$version/" HEAD | gzip -n9 >"$out/dbo_$version.orig.tar.gz"
tar xzf "$out/dbo_$version.orig.tar.gz" -C "$out"
cp -R packaging/debian "$tree/debian"
(cd "$tree" && dpkg-buildpackage -us -uc)
lintian --info --fail-on error,warning "$out"/dbo_"$version"-*.changes
