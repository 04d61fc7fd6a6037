"""A server of event streams for the scripts in this folder.

events.py PORT answers each request of /NAME or /NAME/… with the file NAME of its working
directory, as an event stream in chunks of a few bytes. A line "!SECONDS" of the file is not sent:
what follows it comes that much later.
"""
import http.server
import re
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with open(self.path.split("/")[1], "rb") as file:
            parts = re.split(rb"(?m)^!([\d.]+)\n", file.read())
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i, data in enumerate(parts):
            if i % 2:
                time.sleep(float(data))
                continue
            for at in range(0, len(data), 50):
                piece = data[at:at + 50]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # a client that left


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
