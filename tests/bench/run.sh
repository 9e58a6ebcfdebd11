#!/bin/sh
# make bench: run.sh BINARY [ROW...]. See bench.py.
exec python3 "$(dirname "$0")/bench.py" "$@"
