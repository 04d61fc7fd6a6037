"""Writes two captures of one TCP segment of 100000 bytes, as BIG TCP sends them: jumbo.pcap with an
IPv6 jumbogram, zero.pcap with an IPv4 packet whose total length is 0."""
import struct

DATA = b"x" * 100000
LINK = bytes.fromhex("020000000002020000000001")
TCP = struct.pack("!HHIIBBHHH", 1234, 80, 1000, 1, 0x50, 0x18, 512, 0, 0)
FROM = bytes.fromhex("20010db8" + "00" * 11 + "01")
TO = bytes.fromhex("20010db8" + "00" * 11 + "02")


def write(name, kind, header):
    packet = LINK + struct.pack("!H", kind) + header + TCP + DATA
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        file.write(struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet)


jumbo = struct.pack("!BBBBI", 6, 0, 0xC2, 4, 8 + len(TCP) + len(DATA))
write("jumbo.pcap", 0x86DD, struct.pack("!IHBB", 0x60000000, 0, 0, 64) + FROM + TO + jumbo)
write("zero.pcap", 0x0800, struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, 1, 0x4000, 64, 6, 0,
                                       bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])))
