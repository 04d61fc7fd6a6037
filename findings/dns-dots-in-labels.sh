#!/bin/bash
# One would guess that DNS libraries tell a dot within a label from one between labels: services that
# DNS-SD announces have names for people, such as "Web 1.2".
#
# dns-packet and dns2 for Node and dnslib for Python do not escape it: the label is two, and a
# question for the name that they returned is one for another name. dnspython writes "\.".
#
# dns-packet 5.6.1, dns2 3.0.0 (npm), dnslib 0.9.26, dnspython 2.9.2 (PyPI), 2026-11-29; RFC 6763,
# section 4.3
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get dns-packet@5.6.1 dns2@3.0.0
pip_get dnspython==2.9.2 dnslib==0.9.26
cat >write.py <<'END'
import dns.message
import dns.rrset
answer = dns.message.make_response(dns.message.make_query("_http._tcp.local", "PTR"))
answer.answer = [dns.rrset.from_text("_http._tcp.local.", 120, "IN", "PTR",
                                     r"Web\0321\.2._http._tcp.local.")]
print(answer.to_wire().hex())
END
cat >read.py <<'END'
import sys
import dns.message
import dnslib


def labels(wire):
    count, at = 0, 12
    while wire[at]:
        count, at = count + 1, at + wire[at] + 1
    return count


wire = bytes.fromhex(sys.argv[1])
name = dns.message.from_wire(wire).answer[0][0].target
print(name, labels(dns.message.make_query(name.to_text(), "SRV").to_wire()))
name = dnslib.DNSRecord.parse(wire).rr[0].rdata
print(name, labels(dnslib.DNSRecord.question(str(name), "SRV").pack()))
END
cat >read.cjs <<'END'
const packet = require('dns-packet')
const { Packet } = require('dns2')
const labels = wire => {
	let count = 0
	for (let at = 12; wire[at]; at += wire[at] + 1) count++
	return count
}
const wire = Buffer.from(process.argv[2], 'hex')
for (const name of [packet.decode(wire).answers[0].data, Packet.parse(wire).answers[0].domain]) {
	const question = packet.encode({ type: 'query', questions: [{ type: 'SRV', name }] })
	console.log(name, labels(question))
}
END
wire=$(py/bin/python write.py)
{ py/bin/python read.py "$wire" && node read.cjs "$wire"; } >seen
expect "dnspython: name, labels of a question for it" 'Web\0321\.2._http._tcp.local. 4' \
	"$(sed -n 1p seen)"
expect "dnslib" 'Web\0321.2._http._tcp.local. 5' "$(sed -n 2p seen)"
expect "dns-packet" 'Web 1.2._http._tcp.local 5' "$(sed -n 3p seen)"
expect "dns2, dns-packet's question" 'Web 1.2._http._tcp.local 5' "$(sed -n 4p seen)"
