#!/bin/sh
# Starts Tidemark with the Node.js runtime beside this file, wherever the folder is.
set -eu
here=$(dirname "$(readlink -f "$0")")
exec "$here/bin/node" "$here/lib/node_modules/tidemark/build/server/cli.js" "$@"
