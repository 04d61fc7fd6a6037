#!/bin/bash
# One would guess that HttpRequest's timeout(5 s), with send() and BodyHandlers.ofString(), ends a
# request whose answer is not complete after 5 s: send() returns when the whole body is there.
#
# The timeout of Java's HttpClient ends with the head of the answer. A body that pauses for 15 s, or
# for ever, is waited for, by send() and by sendAsync(), and by what is built on them: LangChain4j's
# timeout(5 s) is the same one, so a model's server that stalls within an answer holds a thread.
# OkHttp's callTimeout ends the same request.
#
# OpenJDK 17, dev.langchain4j:langchain4j-open-ai 1.19.0, com.squareup.okhttp3:okhttp-jvm 5.5.1
# (Maven), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get dev.langchain4j:langchain4j-open-ai:1.19.0 com.squareup.okhttp3:okhttp-jvm:5.5.1
cat >serve.py <<'PY'
"""serve.py PORT sends the rest of an answer 15 s after its head, except of /quick."""
import socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
text = (b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,'
        b'"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}')
def serve(c):
    try:
        request = b""
        while b"\r\n\r\n" not in request:
            request += c.recv(65536) or sys.exit()
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                  b"Content-Length: %d\r\n\r\n%s" % (len(text), text[:9]))
        if b"/quick" not in request:
            time.sleep(15)
        c.sendall(text[9:])
    except OSError:
        pass
    c.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
PY
cat >Ask.java <<'JAVA'
import dev.langchain4j.model.openai.OpenAiChatModel;
import java.net.URI;
import java.net.http.*;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.concurrent.ConcurrentHashMap;
import okhttp3.*;

class Ask {
	static final Duration LIMIT = Duration.ofSeconds(5);

	static String ask(String which, String url) {
		HttpRequest request = HttpRequest.newBuilder(URI.create(url)).timeout(LIMIT).build();
		try {
			switch (which) {
			case "send" -> HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
			case "sendAsync" ->
				HttpClient.newHttpClient().sendAsync(request, BodyHandlers.ofString()).get();
			case "LangChain4j" -> OpenAiChatModel.builder().baseUrl(url).apiKey("x").modelName("m")
				.timeout(LIMIT).maxRetries(0).build().chat("?");
			case "OkHttp" -> new OkHttpClient.Builder().callTimeout(LIMIT).build()
				.newCall(new Request.Builder().url(url).build()).execute().body().string();
			}
		} catch (Exception e) {
			return e.getClass().getSimpleName() + " " + e.getMessage();
		}
		return "an answer";
	}

	public static void main(String[] args) throws Exception {
		String[] all = {"send", "sendAsync", "LangChain4j", "OkHttp"};
		for (int i = 0; i < 2; i++) // the first requests load classes
			for (String which : all)
				ask(which, args[0] + "quick");
		var said = new ConcurrentHashMap<String, String>();
		var threads = new ArrayList<Thread>();
		for (String which : all)
			threads.add(new Thread(() -> said.put(which, ask(which, args[0]))));
		for (Thread thread : threads)
			thread.start();
		for (Thread thread : threads)
			thread.join();
		for (String which : all)
			System.out.println(said.get(which));
		System.exit(0);
	}
}
JAVA
javac -cp 'jars/*' Ask.java
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
echo "an answer that takes 15 s, asked for with a timeout of 5 s"
java -cp 'jars/*:.' Ask "http://127.0.0.1:$port/" 2>err >seen
expect "send, sendAsync, LangChain4j, OkHttp" \
	"an answer, an answer, an answer, InterruptedIOException timeout" \
	"$(sed -z 's/\n/, /g; s/, $//' seen)"
