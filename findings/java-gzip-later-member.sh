#!/bin/bash
# One would guess that a client in Java that reads a gzip body of two members, as logs that are
# appended to have, reads both (RFC 1952, 2.2), or fails, whenever they arrive.
#
# GZIPInputStream reads both if they arrive together. If the second comes half a second later, it
# ends after the first, without an error, though the Content-Length is that of both: it asks the
# stream what is available at that instant. HttpURLConnection, HttpClient and Apache's httpclient5,
# which decompresses by itself, lose the second. OkHttp fails in both cases.
#
# OpenJDK 17, com.squareup.okhttp3:okhttp-jvm 5.5.1, org.apache.httpcomponents.client5:httpclient5
# 5.6.5 (Maven), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get com.squareup.okhttp3:okhttp-jvm:5.5.1 org.apache.httpcomponents.client5:httpclient5:5.6.5 \
	org.slf4j:slf4j-nop:1.7.36
cat >serve.py <<'END'
"""serve.py PORT answers with a gzip body of two members; with /later the second comes later."""
import gzip, http.server, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        members = [gzip.compress(b"one\n"), gzip.compress(b"two\n")]
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(sum(map(len, members))))
        self.end_headers()
        if self.path == "/later":
            self.wfile.write(members[0])
            time.sleep(0.5)
            self.wfile.write(members[1])
        else:
            self.wfile.write(b"".join(members))

    def log_message(self, *_):
        pass

class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # a client that left

Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
cat >Ask.java <<'END'
import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.util.zip.GZIPInputStream;
import okhttp3.*;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.classic.HttpClients;

class Ask {
	interface Body { String read() throws Exception; }

	static void show(String what, Body body) {
		String text;
		try {
			text = body.read().replace("\n", " ").trim();
		} catch (Exception e) {
			text = e.getClass().getSimpleName() + ": " + e.getMessage();
		}
		System.out.println(what + ": " + text);
	}

	static String text(InputStream in) throws IOException { return new String(in.readAllBytes()); }

	public static void main(String[] args) {
		for (var path : new String[] {"/once", "/later"}) {
			var url = args[0] + path;
			show("HttpURLConnection" + path, () -> text(new GZIPInputStream(
				URI.create(url).toURL().openConnection().getInputStream())));
			show("HttpClient" + path, () -> text(new GZIPInputStream(
				HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(url)).build(),
				HttpResponse.BodyHandlers.ofInputStream()).body())));
			show("OkHttp" + path, () -> new OkHttpClient().newCall(
				new Request.Builder().url(url).build()).execute().body().string());
			show("httpclient5" + path, () -> {
				try (var client = HttpClients.createDefault()) {
					return client.execute(new HttpGet(url),
						r -> text(r.getEntity().getContent()));
				}
			});
		}
		System.exit(0);
	}
}
END
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
java -cp 'jars/*' Ask.java "http://127.0.0.1:$port" >seen
for client in HttpURLConnection HttpClient httpclient5; do
	expect "$client, at once" "one two" "$(sed -n "s/^$client.once: //p" seen)"
	expect "$client, the second member later" "one" "$(sed -n "s/^$client.later: //p" seen)"
done
for path in once later; do
	expect "OkHttp, $path" "IOException: gzip finished without exhausting source" \
		"$(sed -n "s/^OkHttp.$path: //p" seen)"
done
