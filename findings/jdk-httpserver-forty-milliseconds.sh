#!/bin/bash
# One would guess that a server in the JDK answers a client on the same machine within a millisecond
# or two, on a connection that is kept.
#
# com.sun.net.httpserver writes the header and the body apart, and leaves Nagle's algorithm on: each
# answer but the first few takes 40 ms. `-Dsun.net.httpserver.nodelay=true` ends that.
#
# OpenJDK 17, 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

cat >Serve.java <<'END'
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

class Serve {
	public static void main(String[] args) throws Exception {
		var address = new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0]));
		var server = HttpServer.create(address, 0);
		server.createContext("/", exchange -> {
			exchange.sendResponseHeaders(200, 5);
			exchange.getResponseBody().write("hello".getBytes());
			exchange.close();
		});
		server.start();
	}
}
END
cat >ask.py <<'END'
import http.client, statistics, sys, time
connection, took = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1])), []
for _ in range(60):
    start = time.monotonic()
    connection.request("GET", "/")
    connection.getresponse().read()
    took.append(time.monotonic() - start)
print(round(statistics.median(took[30:]) * 1000, 1))
END
plain=$(free_port)
nodelay=$(free_port)
java Serve.java "$plain" &
java -Dsun.net.httpserver.nodelay=true Serve.java "$nodelay" &
wait_port "$plain" && wait_port "$nodelay"
expect "Java" 17 "$(java -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p')"
slow=$(python3 ask.py "$plain")
quick=$(python3 ask.py "$nodelay")
echo "median ms: $slow; with nodelay: $quick"
holds "over 35 ms" "$slow > 35"
holds "with nodelay below 20 ms" "$quick < 20"
