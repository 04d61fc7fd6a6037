#!/bin/bash
# One would guess that an SseEventSource with reconnectingEvery(5, SECONDS) asks again 5 s after a
# stream has ended, and that it is the same as reconnectingEvery(5000, MILLISECONDS).
#
# Jersey loses the unit: 5 s are 5 ms. A server whose streams are short gets as many requests as it
# can answer.
#
# jersey-media-sse 4.0.2 (Maven), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get org.glassfish.jersey.core:jersey-client:4.0.2 org.glassfish.jersey.inject:jersey-hk2:4.0.2 \
	org.glassfish.jersey.media:jersey-media-sse:4.0.2
printf 'data: one\n\n' >stream
port=$(free_port)
python3 "$here/events.py" "$port" &
wait_port "$port"
cat >Ask.java <<'END'
import jakarta.ws.rs.client.ClientBuilder;
import jakarta.ws.rs.sse.SseEventSource;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

class Ask {
	static int streams(String url, long delay, TimeUnit unit) throws Exception {
		var events = new AtomicInteger();
		var source = SseEventSource.target(ClientBuilder.newClient().target(url))
			.reconnectingEvery(delay, unit).build();
		source.register(event -> events.incrementAndGet());
		source.open();
		while (events.get() == 0)
			Thread.sleep(10);
		Thread.sleep(3000);
		source.close();
		return events.get();
	}

	public static void main(String[] args) throws Exception {
		System.out.print(streams(args[0], 5000, TimeUnit.MILLISECONDS) + " ");
		System.out.println(streams(args[0], 5, TimeUnit.SECONDS));
		System.exit(0);
	}
}
END
read -r milliseconds seconds < <(java -cp 'jars/*' Ask.java "http://127.0.0.1:$port/stream" 2>err)
expect "streams within 3 s, 5000 MILLISECONDS" 1 "$milliseconds"
echo "streams within 3 s, 5 SECONDS: $seconds"
holds "several" "$seconds > 2"
