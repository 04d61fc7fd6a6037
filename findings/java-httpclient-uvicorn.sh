#!/bin/bash
# One would guess that a POST of Java's HttpClient reaches an ASGI application with its body: the
# client offers HTTP/2 by `Upgrade: h2c`, and a server that does not know that ignores it.
#
# uvicorn with httptools, which it takes where that is installed, drops the body: the application
# sees 0 bytes. With h11, or if the client is told to use HTTP/1.1, all 5 arrive.
#
# uvicorn 0.54.0, httptools 0.9.0, h11 0.16.0 (PyPI), OpenJDK 17, 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get uvicorn==0.54.0 httptools==0.9.0 h11==0.16.0
cat >app.py <<'END'
async def app(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"%d" % len(body)})
END
cat >Post.java <<'END'
import java.net.URI;
import java.net.http.*;

class Post {
	public static void main(String[] args) throws Exception {
		var client = HttpClient.newBuilder().version(HttpClient.Version.valueOf(args[1])).build();
		var request = HttpRequest.newBuilder(URI.create(args[0]))
			.POST(HttpRequest.BodyPublishers.ofString("hello")).build();
		System.out.println(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
	}
}
END
httptools=$(free_port)
h11=$(free_port)
py/bin/uvicorn --lifespan off --log-level error --http httptools --port "$httptools" app:app &
py/bin/uvicorn --lifespan off --log-level error --http h11 --port "$h11" app:app &
wait_port "$httptools" && wait_port "$h11"
got() { java Post.java "http://127.0.0.1:$1/" "$2"; }
expect "httptools, as by default" 0 "$(got "$httptools" HTTP_2)"
expect "httptools, HTTP/1.1" 5 "$(got "$httptools" HTTP_1_1)"
expect "h11, as by default" 5 "$(got "$h11" HTTP_2)"
