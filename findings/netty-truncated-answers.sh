#!/bin/bash
# One would guess that a resolver that learns from the TC bit that an answer over UDP is cut asks
# again over TCP, as RFC 7766 has it: a service with many instances has many addresses.
#
# Netty's DnsNameResolver does not by default, and returns what was in the cut answer, without an
# error: of sixty addresses thirty, or none if the server leaves out all. It asks again if its
# builder was given a socketChannelType. Java's own resolver, and Node's, give all sixty.
#
# io.netty:netty-resolver-dns 4.2.20.Final (Maven), OpenJDK 17, Node 20, 2026-12-01
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get io.netty:netty-resolver-dns:4.2.20.Final
cat >serve.py <<'PY'
"""serve.py answers with sixty addresses, over UDP with those that fit into 512 bytes.

The name none.test is an exception: over UDP it has none."""
import socket, socketserver, struct, threading

def answer(query, limit):
    end = query.index(b"\0", 12) + 5
    count = 60 if query[end - 4:end - 2] == b"\0\1" else 0
    fit = min(count, 0 if limit == 512 and b"none" in query else (limit - end) // 16)
    return (query[:2] + struct.pack(">HHHHH", 0x8580 | (fit < count) * 0x200, 1, fit, 0, 0)
            + query[12:end] + b"".join(
                b"\xc0\x0c" + struct.pack(">HHIH4B", 1, 1, 60, 4, 10, 0, 0, 1 + i)
                for i in range(fit)))

class TCP(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self.rfile.read(2):
            data = answer(self.rfile.read(*struct.unpack(">H", head)), 65535)
            self.wfile.write(struct.pack(">H", len(data)) + data)

tcp = socketserver.ThreadingTCPServer(("127.0.0.1", 53), TCP)
threading.Thread(target=tcp.serve_forever, daemon=True).start()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 53))
open("listening", "w").close()
while True:
    query, client = udp.recvfrom(4096)
    udp.sendto(answer(query, 512), client)
PY
cat >Ask.java <<'JAVA'
import io.netty.channel.*;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.*;
import io.netty.resolver.dns.*;
import java.net.InetAddress;

class Ask {
	public static void main(String[] args) throws Exception {
		EventLoopGroup group = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
		var builder = new DnsNameResolverBuilder(group.next())
			.datagramChannelType(NioDatagramChannel.class);
		var netty = builder.build();
		System.out.println(netty.resolveAll("pods.test.").get().size());
		try {
			System.out.println(netty.resolveAll("none.test.").get().size());
		} catch (Exception e) {
			System.out.println(e.getCause().getClass().getSimpleName());
		}
		netty = builder.socketChannelType(NioSocketChannel.class).build();
		System.out.println(netty.resolveAll("pods.test.").get().size());
		System.out.println(InetAddress.getAllByName("pods.test.").length);
		System.exit(0);
	}
}
JAVA
cat >run.sh <<'END'
ip link set lo up
echo 'nameserver 127.0.0.1' >resolv.conf
mount --bind resolv.conf /etc/resolv.conf
python3 serve.py &
until [ -e listening ]; do sleep 0.1; done
javac -cp 'jars/*' Ask.java 2>err
java -cp 'jars/*:.' Ask 2>err
node -e 'require("dns").promises.resolve4("pods.test").then(a => console.log(a.length))'
END
unshare -rnmpf --kill-child bash -e run.sh >seen
n=0
for what in '30 Netty' 'UnknownHostException Netty, no address over UDP' '60 Netty with a type' \
	'60 Java' '60 Node'; do
	n=$((n + 1))
	expect "${what#* }" "${what%% *}" "$(sed -n ${n}p seen)"
done
