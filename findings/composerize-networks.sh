#!/bin/bash
# One would guess that composerize turns `docker run --network front --network back`, which Docker
# 25 and later connect to both, into a Compose file with two networks.
#
# It has one, external, of the name "front,back". The options in `--network name=back,alias=db`
# become part of a name, too, and `--publish published=8080,target=80` an entry of "ports" that is
# no short syntax of the Compose Specification. Its one comment is that the network has to exist.
#
# composerize 1.7.6 (npm), 2026-11-30; docker run's reference, "--network", "--publish"
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get composerize@1.7.6
cat >run.mjs <<'END'
import composerize from 'composerize'
console.log(composerize(process.argv[2]))
END
node run.mjs 'docker run --network front --network back nginx' >two.yml
node run.mjs 'docker run --network name=back,alias=db nginx' >options.yml
node run.mjs 'docker run --publish published=8080,target=80 nginx' >publish.yml
expect "networks of two --network" "front,back:" \
	"$(sed -n '/^networks/,$p' two.yml | grep -o '[^ ]*:$' | tail -n +2)"
expect "networks of name=back,alias=db" "name=back,alias=db:" \
	"$(sed -n '/^networks/,$p' options.yml | grep -o '[^ ]*:$' | tail -n +2)"
expect "ports" "- published=8080,target=80" "$(grep -o -- '- published.*' publish.yml)"
