#!/bin/bash
# One would guess that a library that reads pcapng files gives the times of the packets in the unit
# that the file says: microseconds, unless its interface has the option if_tsresol.
#
# pcap-file, whose field is a Duration "since 1970-01-01 00:00:00 UTC", takes each unit for a
# nanosecond. A packet of 2023 in a file of scapy's is of 20 January 1970, and gaps between packets
# are a thousandth. What it writes without that option, others read as thousandfold.
#
# pcap-file 2.0.0 (crates.io), scapy 2.8.0 (PyPI), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get scapy==2.8.0
cat >write.py <<'END'
from scapy.all import Ether, IP, UDP
from scapy.utils import PcapNgWriter
writer = PcapNgWriter("scapy.pcapng")
packet = Ether() / IP() / UDP() / b"x"
for packet.time in 1700000000.25, 1700000001.25:
    writer.write(packet)
writer.close()
END
cat >read.py <<'END'
import sys
from scapy.all import rdpcap
print(*[p.time for p in rdpcap(sys.argv[1])])
END
cargo_build 'pcap-file = "=2.0.0"' <<'END'
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use pcap_file::DataLink;
use std::{fs::File, time::Duration};

fn main() {
    let mut reader = PcapNgReader::new(File::open("scapy.pcapng").unwrap()).unwrap();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            println!("{:?}", packet.timestamp);
        }
    }
    let mut writer = PcapNgWriter::new(File::create("rust.pcapng").unwrap()).unwrap();
    let interface =
        InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options: vec![] };
    writer.write_pcapng_block(interface).unwrap();
    let packet = EnhancedPacketBlock {
        interface_id: 0,
        timestamp: Duration::from_millis(1_700_000_000_250),
        original_len: 60,
        data: vec![0; 60].into(),
        options: vec![],
    };
    writer.write_pcapng_block(packet).unwrap();
}
END
py/bin/python write.py
expect "scapy reads its own" "1700000000.25 1700000001.25" "$(py/bin/python read.py scapy.pcapng)"
expect "pcap-file reads scapy's" "1700000.00025s 1700000.00125s" \
	"$(target/debug/finding | paste -sd ' ')"
expect "scapy reads pcap-file's 1700000000.25" "1700000000250" \
	"$(py/bin/python read.py rust.pcapng)"
