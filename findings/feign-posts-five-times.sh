#!/bin/bash
# One would guess that a POST that a server has read, and answered by closing the connection, is an
# error after one request: RFC 9110, 9.2.2, asks that a client not repeat a POST on its own.
#
# Feign posts five times before it throws, and async-http-client six times: neither looks at the
# method, and both repeat by default (Retryer.Default, maxRequestRetry). OkHttp posts once.
#
# io.github.openfeign:feign-core 13.6, org.asynchttpclient:async-http-client 3.0.2,
# com.squareup.okhttp3:okhttp-jvm 5.5.1 (Maven), OpenJDK 17, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get io.github.openfeign:feign-core:13.6 org.asynchttpclient:async-http-client:3.0.2 \
	com.squareup.okhttp3:okhttp-jvm:5.5.1 org.slf4j:slf4j-nop:2.0.17
cat >serve.py <<'END'
"""serve.py PORT reads requests and closes without an answer, but tells how many to /count."""
import re, socket, sys, threading
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
count = 0
def serve(c):
    global count
    text = b""
    while b"\r\n\r\n" not in text:
        if not (piece := c.recv(4096)):
            return
        text += piece
    length = int((re.search(rb"(?i)content-length: (\d+)", text) or [0, 0])[1])
    while len(text.split(b"\r\n\r\n", 1)[1]) < length:
        text += c.recv(4096)
    if b" /count " in text:
        c.sendall(b"HTTP/1.0 200 X\r\n\r\n%d" % count)
        count = 0
    else:
        count += 1
    c.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
cat >Post.java <<'END'
interface Orders {
	@feign.RequestLine("POST /orders")
	void order(String what);
}

class Post {
	public static void main(String[] args) throws Exception {
		String url = args[1];
		try {
			switch (args[0]) {
			case "feign":
				feign.Feign.builder().target(Orders.class, url).order("one");
				break;
			case "async-http-client":
				try (var client = org.asynchttpclient.Dsl.asyncHttpClient()) {
					client.preparePost(url + "/orders").setBody("one").execute().get();
				}
				break;
			default:
				var body = okhttp3.RequestBody.create("one".getBytes());
				new okhttp3.OkHttpClient().newCall(new okhttp3.Request.Builder()
					.url(url + "/orders").post(body).build()).execute();
			}
			System.out.println("no error");
		} catch (Exception e) {
			System.out.println("error: " + e.getClass().getSimpleName());
		}
		System.exit(0);
	}
}
END
mkdir classes
javac -proc:none -cp 'jars/*' -d classes Post.java
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
for client in feign async-http-client okhttp; do
	java -cp 'classes:jars/*' Post $client "http://127.0.0.1:$port" >error
	sed "s/^/$client: /" error
	count=$(python3 -c '
import sys, urllib.request
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/count").read().decode())' "$port")
	case $client in feign) n=5 ;; async-http-client) n=6 ;; *) n=1 ;; esac
	expect "  requests" $n "$count"
done
