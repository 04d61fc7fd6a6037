#!/bin/bash
# One would guess that create() of a Kubernetes client is an error after one POST if the API server
# answers 500: the object may have been made all the same, and one with generateName is made again
# by each further POST.
#
# fabric8's client for Java posts eleven times, over 20 s, before it throws: it repeats each request
# that is answered by 429 or 5xx, whatever its method is (requestRetryBackoffLimit, 10 by default).
#
# io.fabric8:kubernetes-client 8.0.0 (Maven), OpenJDK 17, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get io.fabric8:kubernetes-client:8.0.0 org.slf4j:slf4j-nop:2.0.17
cat >serve.py <<'END'
import http.server, json, sys
count = 0

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self):
        global count
        count += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(500, json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                     "reason": "InternalError", "code": 500}).encode())

    def do_GET(self):
        global count
        text, count = b"%d" % count, 0
        self.answer(200, text)

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
END
cat >Create.java <<'END'
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.client.*;

class Create {
	public static void main(String[] args) {
		var config = new ConfigBuilder(Config.empty()).withMasterUrl(args[0]).build();
		try (var client = new KubernetesClientBuilder().withConfig(config).build()) {
			client.pods().inNamespace("default").resource(new PodBuilder().withNewMetadata()
				.withGenerateName("job-").endMetadata().build()).create();
			System.out.println("no error");
		} catch (KubernetesClientException e) {
			System.out.println("error " + e.getCode());
		}
		System.exit(0);
	}
}
END
port=$(free_port)
python3 serve.py "$port" &
wait_port "$port"
java -cp 'jars/*' Create.java "http://127.0.0.1:$port" >said 2>warnings
expect "create()" "error 500" "$(tail -1 said)"
expect "POSTs" 11 "$(python3 -c '
import sys, urllib.request
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/").read().decode())' "$port")"
