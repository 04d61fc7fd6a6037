#!/bin/bash
# One would guess that Apache's HttpClient, whose documentation has 503 among the answers after
# which it repeats a request, repeats those that are idempotent, as it does after I/O errors: RFC
# 9110, 9.2.2, asks that a client not repeat a POST on its own.
#
# It repeats a POST, too: it waits a second, or as long as the answer's Retry-After asks, posts
# again, and returns the second answer. The server has the order twice, and a measured latency has a
# second of sleep in it. Java's own client returns the 503.
#
# org.apache.httpcomponents.client5:httpclient5 5.6.5 (Maven), OpenJDK 17, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get org.apache.httpcomponents.client5:httpclient5:5.6.5 org.slf4j:slf4j-nop:1.7.36
port=$(free_port)
python3 "$here/web.py" serve "$port" &
wait_port "$port"
cat >Post.java <<'END'
import java.net.URI;
import java.net.http.*;
import org.apache.hc.client5.http.classic.methods.HttpPost;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.io.entity.*;

class Post {
	public static void main(String[] args) throws Exception {
		long start = System.nanoTime();
		int status;
		if (args[0].equals("apache")) {
			var post = new HttpPost(args[1]);
			post.setEntity(new StringEntity("order"));
			try (var client = HttpClients.createDefault()) {
				status = client.execute(post, response -> {
					EntityUtils.consume(response.getEntity());
					return response.getCode();
				});
			}
		} else {
			var request = HttpRequest.newBuilder(URI.create(args[1]))
				.version(HttpClient.Version.HTTP_1_1)
				.POST(HttpRequest.BodyPublishers.ofString("order")).build();
			status = HttpClient.newHttpClient()
				.send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
		}
		System.out.printf("%d %.2f%n", status, (System.nanoTime() - start) / 1e9);
	}
}
END
# post CLIENT prints the status, the seconds, and how many requests the server got.
post() {
	java -cp 'jars/*' Post.java "$1" "http://127.0.0.1:$port/answer?status=503" | tr '\n' ' '
	python3 -c '
import sys, urllib.request
url = f"http://127.0.0.1:{sys.argv[1]}/count"
print(urllib.request.urlopen(url).read().decode().strip())' "$port"
}
read -r status took count < <(post apache)
echo "httpclient5: $took s"
expect "status, requests" "503 2" "$status $count"
holds "over a second" "$took >= 1"
read -r status took count < <(post java)
echo "Java's: $took s"
expect "status, requests" "503 1" "$status $count"
