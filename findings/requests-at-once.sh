#!/bin/bash
# One would guess that 150 requests that an application makes at once are at the server at once, or
# that a client that holds some back says so: a server of language models can have that many.
#
# Of aiohttp's and httpx's 100 are; the others of aiohttp wait, unseen, until one ends, and those of
# httpx fail after 5 s (PoolTimeout). Of OkHttp's enqueue and of Apache's HttpClient 5 are. Node's
# fetch and Java's HttpClient have all 150 there. What is measured has the waiting in it, and looks
# like a slow server. Each limit is in the documentation of its library.
#
# httpx 0.28.1, aiohttp 3.14.5 (PyPI), com.squareup.okhttp3:okhttp-jvm 5.5.1,
# org.apache.httpcomponents.client5:httpclient5 5.6.5 (Maven), OpenJDK 17, Node 20, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get httpx==0.28.1 aiohttp==3.14.5
mvn_get com.squareup.okhttp3:okhttp-jvm:5.5.1 org.slf4j:slf4j-nop:1.7.36 \
	org.apache.httpcomponents.client5:httpclient5:5.6.5
cat >serve.py <<'END'
"""serve.py PORT answers when 150 requests wait, or after 12 s; /most tells how many did."""
import asyncio, sys
waiting, most, go = 0, 0, asyncio.Event()

async def serve(reader, writer):
    global waiting, most, go
    try:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            text = b"hello"
            if request.split()[1] == b"/most":
                text, waiting, most, go = b"%d" % most, 0, 0, asyncio.Event()
            else:
                if waiting == 0:
                    asyncio.get_running_loop().call_later(12, go.set)
                waiting += 1
                most = max(most, waiting)
                if waiting == 150:
                    go.set()
                mine = go
                await mine.wait()
                waiting -= 1
            writer.write(b"HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()

async def listen():
    await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=1024)
    await asyncio.Event().wait()

asyncio.run(listen())
END
cat >ask.py <<'END'
import asyncio, collections, sys
which, url = sys.argv[1:]

def at_once(get):
    return asyncio.gather(*(get() for _ in range(150)), return_exceptions=True)

async def main():
    if which == "httpx":
        import httpx
        async with httpx.AsyncClient(timeout=httpx.Timeout(60, pool=5)) as client:
            return await at_once(lambda: client.get(url))
    import aiohttp
    async with aiohttp.ClientSession() as session:
        async def get():
            async with session.get(url) as answer:
                return await answer.text()
        return await at_once(get)

answers = asyncio.run(main())
errors = collections.Counter(type(e).__name__ for e in answers if isinstance(e, Exception))
print(*("%d %s" % (n, e) for e, n in errors.items()))
END
cat >ask.mjs <<'END'
await Promise.all(Array.from({ length: 150 }, () => fetch(process.argv[2]).then(a => a.text())))
END
cat >Ask.java <<'END'
import java.net.URI;
import java.net.http.*;
import java.time.Duration;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.classic.HttpClients;

class Ask {
	public static void main(String[] args) throws Exception {
		String which = args[0], url = args[1];
		var ok = new okhttp3.OkHttpClient.Builder().readTimeout(Duration.ofMinutes(1)).build();
		var java = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
		var apache = HttpClients.createDefault();
		for (int i = 0; i < 150; i++)
			if (which.equals("okhttp"))
				ok.newCall(new okhttp3.Request.Builder().url(url).build()).enqueue(
					new okhttp3.Callback() {
						public void onFailure(okhttp3.Call call, java.io.IOException e) {}
						public void onResponse(okhttp3.Call call, okhttp3.Response answer) {
							answer.close();
						}
					});
			else if (which.equals("java"))
				java.sendAsync(HttpRequest.newBuilder(URI.create(url)).build(),
					HttpResponse.BodyHandlers.discarding());
			else
				new Thread(() -> {
					try {
						apache.execute(new HttpGet(url), answer -> answer.getCode());
					} catch (java.io.IOException e) {
					}
				}).start();
		Thread.sleep(11000);
		System.exit(0);
	}
}
END
mkdir classes
javac -cp 'jars/*' -d classes Ask.java
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
url=http://127.0.0.1:$port/
most() { python3 -c '
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1] + "most").read().decode())' "$url"; }
for client in httpx aiohttp node java okhttp httpclient5; do
	errors=""
	case $client in
	httpx | aiohttp) errors=$(timeout 40 py/bin/python ask.py $client "$url") ;;
	node) node ask.mjs "$url" ;;
	*) java -cp 'classes:jars/*' Ask $client "$url" ;;
	esac
	n=150
	case $client in httpx | aiohttp) n=100 ;; okhttp | httpclient5) n=5 ;; esac
	expect "$client: at the server at once" $n "$(most)"
	[ $client != httpx ] || expect "  errors" "50 PoolTimeout" "$errors"
	[ $client != aiohttp ] || expect "  errors" "" "$errors"
done
