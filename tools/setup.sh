#!/bin/sh
# Installs what a make target needs and this machine lacks.
#
# Usage: tools/setup.sh demo|test|check|parity|arm|clients|avx512
#
# Each need is probed by using it (a header that compiles, a command that is found), so nothing is
# asked of a machine that has it in another way. Missing Debian packages are named first, then
# installed as root or through sudo; without either, the one command to run is printed and the exit
# status is 2.
set -eu

stage=${1:-}
case $stage in
demo | test | check | parity | arm | clients | avx512) ;;
*)
    echo "usage: tools/setup.sh demo|test|check|parity|arm|clients|avx512" >&2
    exit 2
    ;;
esac

missing=
need() { # package, probe command...
    package=$1
    shift
    "$@" > /dev/null 2>&1 || missing="$missing $package"
}
compiles() { # compiler, the text of a program, flags...
    compiler=$1 text=$2
    shift 2
    # A real file, because some probes link: /dev/null as output would be replaced by root.
    out=$(mktemp)
    printf '%s\n' "$text" | "$compiler" -x c - -o "$out" "$@"
    status=$?
    rm -f "$out"
    return $status
}
in_path() { command -v "$1"; }
nginx_there() { in_path nginx || test -x /usr/sbin/nginx; } # an ordinary user's path lacks sbin

cc=${CC:-cc}
need gcc in_path "$cc"
need make in_path make
need libc6-dev compiles "${cc%% *}" '#include <stdio.h>
int main(void) { return 0; }'
need libssl-dev compiles "${cc%% *}" '#include <openssl/evp.h>
int main(void) { return EVP_MD_CTX_new() == NULL; }' -lcrypto
need libpng-dev compiles "${cc%% *}" '#include <png.h>
int main(void) { return png_access_version_number() == 0; }' -lpng
need libjpeg62-turbo-dev compiles "${cc%% *}" '#include <stdio.h>
#include <jpeglib.h>
int main(void) { struct jpeg_error_mgr m; return jpeg_std_error(&m) == NULL; }' -ljpeg
need libwebp-dev compiles "${cc%% *}" '#include <webp/decode.h>
#include <webp/demux.h>
int main(void) { return WebPGetDecoderVersion() + WebPGetDemuxVersion() == 0; }' -lwebp -lwebpdemux
if [ -n "${VIDEO:-}" ] || [ "$stage" = check ]; then
    need "libavformat-dev libavcodec-dev libswscale-dev libavutil-dev" compiles "${cc%% *}" '#include <libavformat/avformat.h>
#include <libavcodec/avcodec.h>
#include <libswscale/swscale.h>
int main(void) { return avformat_version() + avcodec_version() + swscale_version() == 0; }' \
        -lavformat -lavcodec -lswscale -lavutil
fi
need libcurl4-openssl-dev compiles "${cc%% *}" '#include <curl/curl.h>
int main(void) { return curl_version() == NULL; }' -lcurl
need libmicrohttpd-dev compiles "${cc%% *}" '#include <microhttpd.h>
int main(void) { return MHD_get_version() == NULL; }' -lmicrohttpd
need libzstd-dev compiles "${cc%% *}" '#include <zstd.h>
int main(void) { return ZSTD_versionNumber() == 0; }' -lzstd
if [ "$stage" != demo ]; then
    need libcmocka-dev compiles "${cc%% *}" '#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
int main(void) { return 0; }' -lcmocka
    need pkg-config in_path pkg-config
    need python3 in_path python3
    need python3-pip python3 -m pip --version
    need minisign in_path minisign
    need openssl in_path openssl
    need nginx-light nginx_there
    need ca-certificates test -s /etc/ssl/certs/ca-certificates.crt
fi
if [ "$stage" = parity ] || [ "$stage" = clients ]; then
    need python3-venv python3 -c 'import ensurepip, venv'
fi
if [ "$stage" = clients ]; then
    need curl in_path curl
    need chromium in_path chromium
fi
if [ "$stage" = arm ]; then
    need gcc-aarch64-linux-gnu in_path aarch64-linux-gnu-gcc
    need libc6-dev-arm64-cross compiles aarch64-linux-gnu-gcc '#include <stdio.h>
int main(void) { return 0; }'
    need qemu-user in_path qemu-aarch64
    need libssl-dev:arm64 compiles aarch64-linux-gnu-gcc '#include <openssl/evp.h>
int main(void) { return EVP_MD_CTX_new() == NULL; }' -lcrypto
    need libcmocka-dev:arm64 compiles aarch64-linux-gnu-gcc 'int main(void) { return 0; }' -lcmocka
fi
if [ "$stage" = avx512 ]; then
    need "bochs bochsbios bochs-term" test -x /usr/bin/bochs -a -r /usr/share/bochs/BIOS-bochs-latest
    need isolinux test -r /usr/lib/ISOLINUX/isolinux.bin
    need syslinux-common test -r /usr/lib/syslinux/modules/bios/ldlinux.c32
    need xorriso in_path xorriso
    need cpio in_path cpio
    need bsdutils in_path script
fi
if [ "$stage" = check ]; then
    need clang in_path clang
    need clang-format in_path clang-format
    need clang-tidy in_path clang-tidy
    need libclang-rt-14-dev compiles clang '#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) { return p == NULL && n > 0; }' \
        -fsanitize=fuzzer,address,undefined
fi

[ -z "$missing" ] && exit 0

echo "make $stage needs these Debian packages:$missing"
command="apt-get install -y --no-install-recommends$missing"
if ! command -v apt-get > /dev/null; then
    echo "this system has no apt-get: install what corresponds to them, then try again" >&2
    exit 2
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo > /dev/null && { [ -t 0 ] || sudo -n true 2> /dev/null; }; then
    as_root=sudo
else
    echo "run this as root, then try again:" >&2
    echo "    apt-get update && $command" >&2
    exit 2
fi

# The other architecture's packages are known only once it is named, and its lists fetched.
if [ "$stage" = arm ]; then
    $as_root dpkg --add-architecture arm64
    $as_root apt-get update
fi

# Package lists may be missing or old: they are fetched once when the first try fails.
quietly="env DEBIAN_FRONTEND=noninteractive"
if ! $as_root $quietly $command; then
    $as_root apt-get update
    $as_root $quietly $command
fi
