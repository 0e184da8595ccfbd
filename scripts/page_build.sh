#!/bin/sh
# Builds the page into src/holdfast/web/static and leaves beside it the hash of the source it was built from, which
# `./run check` compares. Needs node; commit what it builds.
set -eu
cd "$(dirname "$0")/../page"
npm ci --no-audit --no-fund
npm run build
node sizes.mjs --write
cd ..
python3 scripts/page_check.py --write
