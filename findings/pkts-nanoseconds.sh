#!/bin/bash
# One would guess that pkts.io gives each packet's time in the unit that it documents, microseconds,
# also of files whose first number says nanoseconds (`tcpdump --nano`).
#
# It gives such a time in nanoseconds, a thousand times the other, so that a packet of 2023 is of a
# year after 50000.
#
# io.pkts:pkts-core 3.0.10 (Maven), OpenJDK 17, 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get io.pkts:pkts-core:3.0.10 org.slf4j:slf4j-nop:1.7.36
cat >write.py <<'END'
import struct
for name, magic, fraction in ("us", 0xa1b2c3d4, 250000), ("ns", 0xa1b23c4d, 250000000):
    with open(name, "wb") as f:
        f.write(struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 65535, 1))
        f.write(struct.pack("<IIII", 1700000000, fraction, 60, 60) + bytes(60))
END
cat >Read.java <<'END'
import io.pkts.Pcap;

class Read {
	public static void main(String[] args) throws Exception {
		for (String name : args)
			Pcap.openStream(name).loop(packet -> {
				System.out.println(packet.getArrivalTime());
				return true;
			});
	}
}
END
python3 write.py
java -cp 'jars/*' Read.java us ns >times
expect "1700000000.25 s in a file of microseconds" 1700000000250000 "$(sed -n 1p times)"
expect "in a file of nanoseconds" 1700000000250000000 "$(sed -n 2p times)"
