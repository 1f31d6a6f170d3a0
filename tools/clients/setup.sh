#!/bin/sh
# Makes the virtual environment of the client runs under build/clients-venv, from requirements.txt.
# Made again when that file has changed. The browser is the system's own chromium.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
venv=$(cd "$here/../.." && pwd)/build/clients-venv

if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/"
fi
