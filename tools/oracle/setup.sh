#!/bin/sh
# Makes the virtual environment of the oracle under build/oracle-venv.
#
# Usage: tools/oracle/setup.sh [python]        (default: python3; recorded with Python 3.11)
#
# Neither the build nor the tests need it: the files it produces are committed. torch comes as a
# CPU-only build where the package index has one; elsewhere the ordinary wheel, which also runs
# without an accelerator but brings about 2.5 GB of libraries (they cannot be left out: the wheel
# links against them, and `--no-deps` fails at import).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
venv="$root/build/oracle-venv"
python=${1:-python3}

mkdir -p "$root/build"
"$python" -m venv "$venv"
echo '*' > "$venv/.gitignore"

torch=$(sed -n 's/^torch==//p' "$here/requirements.txt")
"$venv/bin/pip" install "torch==$torch+cpu" || "$venv/bin/pip" install "torch==$torch"
"$venv/bin/pip" install -r "$here/requirements.txt"
"$venv/bin/python" -c 'import torch, transformers; print(torch.__version__, transformers.__version__)'
