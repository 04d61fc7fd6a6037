#!/bin/bash
# One would guess that two clients of Memcached, given the same servers in the same order, ask the
# same server for a key, so that a service in Python reads what one in Node has written.
#
# Clients choose the server, each by a hash of its own: with three servers pymemcache and memcached
# agree on 86 of 300 keys, fewer than by chance. What one has set the other does not find, and what
# it deletes stays where the other reads it. With one server nothing of this is seen.
#
# pymemcache 4.0.0 (PyPI), memcached 2.2.2 (npm), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get pymemcache==4.0.0
npm_get memcached@2.2.2
cat >pick.py <<'END'
from pymemcache.client.hash import HashClient
client = HashClient([("127.0.0.1", 11211), ("127.0.0.1", 11212), ("127.0.0.1", 11213)])
for i in range(300):
    print("%s:%s" % client._get_client(f"key-{i}").server)
END
cat >pick.cjs <<'END'
const Memcached = require('memcached')
const client = new Memcached(['127.0.0.1:11211', '127.0.0.1:11212', '127.0.0.1:11213'])
for (let i = 0; i < 300; i++) console.log(client.HashRing.get(`key-${i}`))
END
py/bin/python pick.py >python
node pick.cjs >js
agree() { paste -d ' ' "$1" "$2" | awk '$1 == $2 { n++ } END { print n + 0 }'; }
expect "servers that pymemcache, memcached use" "3 3" "$(sort -u python | wc -l) $(sort -u js | wc -l)"
expect "of 300 keys they agree on" 86 "$(agree python js)"
