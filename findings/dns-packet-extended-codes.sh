#!/bin/bash
# One would guess that the npm package names the response code of a DNS answer, also of those codes
# whose upper bits stand in the OPT record: BADVERS (16), BADCOOKIE (23).
#
# It takes the lower four bits: BADVERS is NOERROR, as if the name existed and had no addresses, and
# BADCOOKIE is YXRRSET. The upper bits are in the OPT record's member extendedRcode.
#
# dns-packet 5.6.1 (npm), dnspython 2.9.2 (PyPI), 2026-11-29; RFC 6891, section 6.1.3
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get dns-packet@5.6.1
pip_get dnspython==2.9.2
cat >write.py <<'END'
import sys
import dns.message
import dns.rcode
query = dns.message.make_query("db.example", "A", use_edns=0)
for name in sys.argv[1:]:
    answer = dns.message.make_response(query)
    answer.set_rcode(dns.rcode.from_text(name))
    wire = answer.to_wire()
    print(dns.rcode.to_text(dns.message.from_wire(wire).rcode()), wire.hex())
END
cat >read.cjs <<'END'
const wire = Buffer.from(process.argv[2], 'hex')
console.log(require('dns-packet').decode(wire).rcode)
END
py/bin/python write.py REFUSED BADVERS BADCOOKIE >answers
while read -r name wire; do
	case $name in
	REFUSED) want=REFUSED ;;
	BADVERS) want=NOERROR ;;
	*) want=YXRRSET ;;
	esac
	expect "dnspython says $name, dns-packet" "$want" "$(node read.cjs "$wire")"
done <answers
