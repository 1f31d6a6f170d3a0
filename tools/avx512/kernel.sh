#!/bin/sh
# Fetches the kernel that tools/avx512/boot starts.
#
# Usage: tools/avx512/kernel.sh FILE
#
# Debian's package is unpacked, not installed: an installed kernel would enter the boot menu.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work"
package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9][^ ]*\).*/\1/p')
apt-get -q -o APT::Sandbox::User=root download "${package:?apt knows no linux-image-cloud-amd64}"
dpkg-deb -x ./*.deb unpacked
cd "$OLDPWD"
cp "$work"/unpacked/boot/vmlinuz-* "$1.part"
mv "$1.part" "$1"
