#!/bin/sh
# Checks that src/server/openapi.json is a valid OpenAPI 3.1 document, with a validator from the
# Python index in a virtual environment under build/.
#
# Usage: tools/openapi/check.sh        from the root of the repository
set -eu

venv=build/openapi-venv
if [ ! -x "$venv/bin/openapi-spec-validator" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet openapi-spec-validator==0.9.0
fi
"$venv/bin/openapi-spec-validator" --schema 3.1 src/server/openapi.json
