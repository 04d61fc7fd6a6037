#!/bin/bash
# One would guess that the npm package that reads and writes PROXY headers writes a header that it read
# so that its receiver reads the same, the values (TLVs) of version 2 included.
#
# It writes a length without the values: the receiver takes them for the first bytes of the
# connection. Its member data also has whatever came after the header, with nothing between.
#
# proxy-protocol-js 4.0.6 (npm), proxy-protocol 0.11.3 (PyPI), 2026-11-29; proxy-protocol.txt,
# section 2.2 (len counts what follows, values included)
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get proxy-protocol-js@4.0.6
pip_get proxy-protocol==0.11.3
cat >header.py <<'END'
import socket
import sys
from ipaddress import IPv4Address
from proxyprotocol.result import ProxyResultIPv4
from proxyprotocol.tlv import ProxyProtocolTLV
from proxyprotocol.v2 import ProxyProtocolV2
if sys.argv[1] == "write":
    address = IPv4Address("192.0.2.1")
    result = ProxyResultIPv4((address, 1000), (address, 80), protocol=socket.SOCK_STREAM,
                             tlv=ProxyProtocolTLV(authority="db.example"))
    print(ProxyProtocolV2().pack(result).hex())
else:
    data = bytes.fromhex(sys.argv[2])
    length = 16 + int.from_bytes(data[14:16], "big")
    result = ProxyProtocolV2().unpack(data[:length])
    print(f"{result.source[0]} {result.tlv.authority}, then {len(data) - length} bytes")
END
cat >copy.cjs <<'END'
const { V2ProxyProtocol } = require('proxy-protocol-js')
const header = V2ProxyProtocol.parse(Uint8Array.from(Buffer.from(process.argv[2], 'hex')))
console.log(Buffer.from(header.build()).toString('hex'))
END
header=$(py/bin/python header.py write)
hello=$(printf hello | od -An -tx1 | tr -d ' ')
copy=$(node copy.cjs "$header$hello")
expect "as PyPI's package wrote it, with 5 bytes" "192.0.2.1 db.example, then 5 bytes" \
	"$(py/bin/python header.py read "$header$hello")"
expect "as npm's package copied it" "192.0.2.1 None, then 18 bytes" \
	"$(py/bin/python header.py read "$copy")"
