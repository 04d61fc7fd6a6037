#!/bin/bash
# One would guess that `timeout: 500` of a query ends it after half a second and destroys its
# connection, as a comment in mysql2's own types says ("the connection it occurred on will be
# destroyed"), and as the library does whose calls it shares, mysql.
#
# mysql2 reports the timeout and keeps the connection, which waits for the old answer. The next
# query, on it or on a pool whose connections all wait, begins only then, and so does its timeout:
# a `select 1` with 0.5 s takes as long as the one that was given up goes on, here 4.5 s.
#
# mysql2 3.24.6, mysql 2.18.1 (npm), mariadb-server-core 10.11.19 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get mariadb-server-core=1:10.11.19-0+deb12u1 libaio1=0.3.113-4 liburing2=2.3-3 \
	libnuma1=2.0.16-1
npm_get mysql2@3.24.6 mysql@2.18.1
as=()
if [ "$(id -u)" = 0 ]; then # mariadbd refuses to run as root
	chmod 755 "$dir"
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
install -d -m 700 ${as[@]:+-o 65534} data tmp
export LD_LIBRARY_PATH=$(echo "$dir"/root/usr/lib/*-linux-gnu)
"${as[@]}" "$(find root -name mariadbd -type f)" --no-defaults --skip-grant-tables --innodb=off \
	--default-storage-engine=Aria --datadir="$dir/data" --tmpdir="$dir/tmp" \
	--lc-messages-dir="$dir/root/usr/share/mysql" --socket="$dir/tmp/s" \
	--skip-networking 2>db.log &
unset LD_LIBRARY_PATH
for _ in $(seq 300); do
	[ ! -S tmp/s ] || break
	sleep 0.1
done
[ -S tmp/s ] || { cat db.log && exit 1; }
cat >ask.js <<'JS'
// ask.js LIBRARY SOCKET gives two queries up after 0.5 s, one of a pool, and asks `select 1` later.
const mysql = require(process.argv[2])
const server = { socketPath: process.argv[3], user: 'u' }
const timeout = 500
async function ask(on, what) {
	on.on('error', () => {})
	await new Promise(resolve => on.query('select 1', resolve))
	await new Promise(resolve => on.query({ sql: 'select sleep(5)', timeout }, resolve))
	const start = Date.now()
	const said = await new Promise(resolve =>
		on.query({ sql: 'select 1', timeout }, error => resolve(error ? error.code : 'answered')))
	return `${what} ${said} ${Date.now() - start}`
}
Promise.all([
	ask(mysql.createConnection(server), 'connection'),
	ask(mysql.createPool({ ...server, connectionLimit: 1 }), 'pool'),
]).then(lines => lines.forEach(line => console.log(line))).then(() => process.exit())
JS
holds "its types say that the connection is destroyed" \
	"$(grep -rs "destroyed and no further operations" node_modules/mysql2/typings | wc -l) > 0"
for library in mysql mysql2; do
	node ask.js "$library" "$dir/tmp/s" >seen
	expect "$library: answers" 2 "$(wc -l <seen)"
	while read -r on said ms; do
		want=answered
		[ "$library $on" != "mysql connection" ] || want=PROTOCOL_ENQUEUE_AFTER_FATAL_ERROR
		expect "$library, $on: the next query" "$want" "$said"
		if [ "$library" = mysql2 ]; then
			holds "after over 3 s, $ms ms" "$ms > 3000"
		else
			holds "within 3 s, $ms ms" "$ms < 3000"
		fi
	done <seen
done
