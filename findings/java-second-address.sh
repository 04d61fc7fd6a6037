#!/bin/bash
# One would guess that a client goes on to the second address of a name if the first refuses the
# connection, as curl, Python, Node, Go, OkHttp and Apache's HttpClient do: of a service with two
# instances one may be down, and a server may listen on one of a host's addresses only.
#
# Java's own HttpClient, HttpURLConnection and Socket ask the first address alone, and fail, and so
# does Lettuce, a client of Redis and Valkey. Jedis asks both.
#
# OpenJDK 17, io.lettuce:lettuce-core 7.7.0.RELEASE, redis.clients:jedis 8.0.2,
# com.squareup.okhttp3:okhttp-jvm 5.5.1, org.apache.httpcomponents.client5:httpclient5 5.6.5
# (Maven), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get com.squareup.okhttp3:okhttp-jvm:5.5.1 org.apache.httpcomponents.client5:httpclient5:5.6.5 \
	io.lettuce:lettuce-core:7.7.0.RELEASE redis.clients:jedis:8.0.2 org.slf4j:slf4j-nop:2.0.17
cat >serve.py <<'PY'
"""serve.py ADDRESS PORT answers requests of HTTP, and commands of Redis."""
import socket, sys, threading
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
def serve(c):
    try:
        while data := c.recv(65536):
            if data.startswith(b"GET /"):
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            else:
                for command in data.upper().split(b"*")[1:]:
                    c.sendall(b"-ERR unknown command\r\n" if b"HELLO" in command else b"+OK\r\n")
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
PY
cat >Ask.java <<'JAVA'
import io.lettuce.core.RedisClient;
import java.net.*;
import java.net.http.*;
import okhttp3.*;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.classic.*;
import redis.clients.jedis.Jedis;

class Ask {
	public static void main(String[] args) {
		String url = "http://web:8000/", what;
		try {
			what = switch (args[0]) {
			case "HttpClient" -> HttpClient.newHttpClient().send(
				HttpRequest.newBuilder(URI.create(url)).build(),
				HttpResponse.BodyHandlers.ofString()).body();
			case "HttpURLConnection" ->
				new String(new URL(url).openConnection().getInputStream().readAllBytes());
			case "Socket" -> new Socket("web", 8000).isConnected() ? "ok" : "";
			case "OkHttp" -> new OkHttpClient().newCall(
				new Request.Builder().url(url).build()).execute().body().string();
			case "httpclient5" -> HttpClients.createDefault().execute(
				new HttpGet(url), new BasicHttpClientResponseHandler());
			case "Jedis" -> new Jedis("web", 8000).ping().toLowerCase();
			default ->
				RedisClient.create("redis://web:8000").connect().sync().ping().toLowerCase();
			};
		} catch (Throwable e) {
			for (; e.getCause() != null && !(e instanceof ConnectException); e = e.getCause());
			what = e instanceof ConnectException ? "refused" : e.toString();
		}
		System.out.println(what);
		System.exit(0);
	}
}
JAVA
cat >run.sh <<'RUN'
ip link set lo up
ip addr add 10.9.0.1/32 dev lo
ip addr add 10.9.0.2/32 dev lo
printf '10.9.0.1 web\n10.9.0.2 web\n' >hosts
mount --bind hosts /etc/hosts
javac -cp 'jars/*' Ask.java 2>err
python3 serve.py 10.9.0.2 8000 &
for _ in $(seq 200); do (: <"/dev/tcp/10.9.0.2/8000") 2>/dev/null && break; sleep 0.1; done
for which in HttpClient HttpURLConnection Socket Lettuce Jedis OkHttp httpclient5; do
	java -cp 'jars/*:.' Ask $which 2>err
done
python3 -c '
import urllib.request
print(urllib.request.urlopen("http://web:8000/").read().decode())'
curl -s http://web:8000/
RUN
unshare -rnmpf --kill-child bash -e run.sh >seen
n=0
for which in HttpClient HttpURLConnection Socket Lettuce Jedis OkHttp httpclient5 Python curl; do
	n=$((n + 1))
	want=ok
	[ $n -gt 4 ] || want=refused
	expect $which $want "$(sed -n ${n}p seen)"
done
