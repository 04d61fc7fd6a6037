package openai

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

// asking is how errors of a request to a server on this machine begin, as testgolden.Stable has
// them.
const asking = "ask http://127.0.0.1:PORT/v1/chat/completions: "

func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }

func status(line, body string) string {
	return "HTTP/1.1 " + line + "\r\nContent-Type: x/y\r\nConnection: close\r\n\r\n" + body
}

func TestHostileResponses(t *testing.T) {
	longest := "data: " + strings.Repeat("x", 1<<20) + "\n\n"
	for _, tt := range []struct{ name, raw, want string }{
		{"nothing", "", "the server closed the connection without a response"},
		{"half-a-head", "HTTP/1.1 200 OK\r\nA: b\r\n",
			"the server closed the connection within its response header, after 23 bytes"},
		{"half-a-status", "HTTP/1.1 2",
			"the server closed the connection within its response header, after 10 bytes"},
		{"garbage", "SSH-2.0-OpenSSH\r\n\x00\xff",
			`read the response: malformed HTTP response "SSH-2.0-OpenSSH"`},
		{"bad-header", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
			`read the response: malformed MIME header: missing colon: "no colon"`},
		{"endless-head", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 70_000),
			"read the response: the response header is longer than 64 KiB"},
		{"endless-hints", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 4000),
			"no response, but 100 informational ones, the last of which was 103 Early Hints"},
		{"endless-continue", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 4000),
			"no response, but 100 informational ones, the last of which was 100 Continue"},
		{"long-hints", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: "+strings.Repeat(
			"x", 1000)+"\r\n\r\n", 70), "read the response: the response header is longer than " +
			"64 KiB"},
		{"error-object", status("401 Unauthorized",
			`{"error":{"message":"no such key","code":"x"}}`),
			"the server answered 401 Unauthorized: no such key"},
		{"error-string", status("404 Not Found", `{"error":"model \"m\" not found"}`),
			`the server answered 404 Not Found: model "m" not found`},
		{"detail", status("422 Unprocessable Entity", `{"detail":[{"msg":"too long"}]}`),
			`the server answered 422 Unprocessable Entity: [{"msg":"too long"}]`},
		{"message", status("503 Service Unavailable",
			`{"object":"error","message":"Loading\nmodel"}`),
			"the server answered 503 Service Unavailable: Loading model"},
		{"other-json", status("500 Oh", ` [ 1, "\u0061" ] `), `the server answered 500 Oh: [1,"a"]`},
		{"html", status("502 Bad Gateway", "<html>\r\n<h1>502\x1b[31m \xff\u202e</h1>"),
			"the server answered 502 Bad Gateway: <html> <h1>502\\x1b[31m " +
				"\\xff\\u202e</h1>"},
		{"page", "HTTP/1.1 501 No\r\nContent-Type: text/html; charset=utf-8\r\n" +
			"Connection: close\r\n\r\n<!DOCTYPE HTML><p>a page",
			"the server answered 501 No: an HTML page"},
		{"no-text", status("500", ""), "the server answered 500"},
		{"long-text", status("500 Oh", strings.Repeat("é", 10_000)),
			"the server answered 500 Oh: " + strings.Repeat("é", 200) + "…"},
		{"switching", "HTTP/1.1 101 Switching Protocols\r\n\r\n",
			"the server answered 101 Switching Protocols"},
		{"no-content", "HTTP/1.1 204 No Content\r\n\r\n", "the server answered 204 No Content"},
		{"redirect",
			"HTTP/1.1 308 Permanent Redirect\r\nLocation: " +
				"https://u:p@other/v1?key=secret\r\nContent-Length: 0\r\n\r\n",
			"the server answered 308 and redirects to https://other/v1?***, which is not " +
				"followed"},
		{"redirect-nowhere", "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
			"the server answered 302 Found"},
		{"json", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"choices\":[]}",
			"the server does not stream: it answered application/json and not " +
				`text/event-stream: {"choices":[]}`},
		{"json-error",
			"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"error\":\"busy\"}",
			"the server does not stream: it answered application/json and not " +
				"text/event-stream: busy"},
		{"no-type", "HTTP/1.1 200 OK\r\n\r\nhello",
			"the server does not stream: it answered no Content-Type and not " +
				"text/event-stream: hello"},
		{"gzip", strings.Replace(head, "\r\n", "\r\nContent-Encoding: gzip\r\n", 1),
			"the server closed the connection after 0 tokens, before the end of its " +
				"response"},
		{"gzip-error", "HTTP/1.1 500 Oh\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08",
			"the server answered 500 Oh"},
		{"coding", strings.Replace(head, "chunked", "gzip, chunked", 1),
			`read the response: unsupported transfer encoding: "gzip, chunked"`},
		{"closed", head + inChunk(says("a")),
			"the server closed the connection after 1 token, before the end of its response"},
		{"closed-in-a-chunk", head + inChunk(says("a"))[:9],
			"the server closed the connection after 0 tokens, before the end of its " +
				"response and in the middle of an event"},
		{"closed-before-the-end", head + inChunk(says("a")) + inChunk(stops),
			"the server closed the connection after 1 token, before the end of its " +
				"response"},
		{"until-close-unfinished", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" +
			says("a") + says("b"), "the server closed the connection after 2 tokens, before the " +
			"end of its " +
			"response"},
		{"too-short",
			"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000\r\n\r\n" +
				says("a"), "the server closed the connection after 1 token, before the end of its " +
				"response"},
		{"no-finish", head + inChunks(says("a"), says("b")),
			"the server ended its response after 2 tokens without saying why: neither " +
				"[DONE] nor a finish_reason came"},
		{"fault-object", head + inChunks(says("a"),
			"data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n"),
			"the server broke off after 1 token: out of memory"},
		{"fault-string", head + inChunks("data: {\"error\":\"oh\"}\n\n"),
			"the server broke off after 0 tokens: oh"},
		{"fault-vllm", head + inChunks("data: {\"object\":\"error\",\"message\":\"oh\"}\n\n"),
			"the server broke off after 0 tokens: oh"},
		{"fault-llama.cpp", head + inChunks(says("a"),
			"error: {\"code\":500,\"message\":\"slot\",\"type\":\"x\"}\n\n"),
			"the server broke off after 1 token: slot"},
		{"fault-event", head + inChunks("event: error\ndata: overloaded\n\n"),
			"the server broke off after 0 tokens: overloaded"},
		{"no-json", head + inChunks("data: {\"choices\":[\n\n"),
			`the server sent an event that is not a completion chunk: {"choices":[`},
		{"other-json", head + inChunks("data: [1]\n\n"),
			"the server ended its response after 0 tokens without saying why: neither [DONE] " +
				"nor a finish_reason came; one of its events was no completion chunk: data: [1]"},
		{"long-event", head + inChunks(longest),
			"the server sent a line longer than 1 MiB in its events"},
		{"long-event-of-lines", head + inChunks(
			strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 1100)),
			"the server sent an event longer than 1 MiB"},
		{"chunk-size", head + "zz\r\n", `read the response after 0 tokens: malformed size of a ` +
			`chunk: "zz"`},
		{"chunk-size-huge", head + "ffffffffffffffffff\r\n",
			"read the response after 0 tokens: the server announces a chunk of " +
				"0xffffffffffffffff bytes or more; the limit is 64 MiB"},
		{"chunk-size-greatest", head + inChunk(says("a")) + "ffffffffffffffff\r\n" + says("b"),
			"read the response after 1 token: the server announces a chunk of " +
				"0xffffffffffffffff bytes; the limit is 64 MiB"},
		{"chunk-size-too-great", head + "4000001;a=b\r\n",
			"read the response after 0 tokens: the server announces a chunk of 0x4000001 " +
				"bytes; the limit is 64 MiB"},
		{"chunk-size-negative", head + "-1\r\n",
			`read the response after 0 tokens: malformed size of a chunk: "-1"`},
		{"chunk-size-none", head + "\r\n",
			`read the response after 0 tokens: malformed size of a chunk: ""`},
		{"chunk-size-long", head + strings.Repeat("0", 10_000),
			"read the response after 0 tokens: the line with the size of a chunk is " +
				"longer than 4 KiB"},
		{"chunk-extension-long", head + "1;a=" + strings.Repeat("x", 10_000),
			"read the response after 0 tokens: the line with the size of a chunk is " +
				"longer than 4 KiB"},
		{"trailers-long", head + "0\r\n" + strings.Repeat(
			"A: "+strings.Repeat("x", 1000)+"\r\n", 70),
			"read the response after 0 tokens: the trailers of the response are longer " +
				"than 64 KiB"},
		{"length-huge",
			"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: " +
				"9223372036854775807\r\n\r\n",
			"read the response after 0 tokens: the server announces a response of " +
				"9223372036854775807 bytes; the limit is 64 MiB"},
		{"chunk-end", head + "3\r\n: xyz\r\n",
			"read the response after 0 tokens: a chunk is longer than it says"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := session(t, endpoint(t, answering(t, tt.raw), Options{})).Ask(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			got, ok := strings.CutPrefix(testgolden.Stable(err.Error()), asking)
			if !ok || got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestHostileWaits(t *testing.T) {
	varies := map[*regexp.Regexp]string{regexp.MustCompile(`\d{3,} bytes came`): "N bytes came",
		regexp.MustCompile(`(no){2,}n?…?$`):          "nono…",
		regexp.MustCompile(`(: keep-alive ){2,}.*$`): ": keep-alive …"}
	const brief = 400 * time.Millisecond // a busy machine gets more
	drip := func(before, every string) talk {
		return func(c net.Conn, _ int, _ *http.Request) bool {
			io.WriteString(c, before)
			for {
				if _, err := io.WriteString(c, every); err != nil {
					return false
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	stall := func(before string) talk {
		return func(c net.Conn, _ int, _ *http.Request) bool {
			io.WriteString(c, before)
			return true
		}
	}
	for _, tt := range []struct {
		name  string
		serve talk
		want  string
	}{
		{"no-answer", stall(""), "no response within {timeout}"},
		{"head-drips", drip("HTTP/1.1 200 OK\r\nA: ", "x"),
			"the response header did not end within {timeout}: N bytes came"},
		{"status-stalls", stall("HTTP/1.1 2"),
			"the response header did not end within {timeout}: 10 bytes came"},
		{"status-drips", drip("", "HTTP/1.1 2"),
			"the response header did not end within {timeout}: N bytes came"},
		{"hints-drip", drip("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
			"no response, but 100 informational ones, the last of which was 103 Early Hints"},
		{"hints-stall", stall("HTTP/1.1 100 Continue\r\n\r\n"),
			"no response within {timeout}, but 1 informational, the last of which was 100 Continue"},
		{"head-only", stall(head), "no token within {timeout}, after 0 tokens"},
		{"one-token", stall(head + inChunk(says("a"))), "no token within {timeout}, after 1 token"},
		{"half-an-event", stall(head + "ffff\r\ndata: {"),
			"an event did not end within {timeout}, after 0 tokens"},
		{"event-drips", drip(head+"fffff\r\ndata: ", "x"),
			"an event did not end within {timeout}, after 0 tokens"},
		{"chunk-size-drips", drip(head+inChunk(says("a")), "0"),
			"the size of a chunk did not end within {timeout}, after 1 token"},
		{"chunk-extension-drips", drip(head+"1;a=", "x"),
			"the size of a chunk did not end within {timeout}, after 0 tokens"},
		{"keep-alive-only", drip(head, inChunk(": keep-alive\n\n")),
			"no token within {timeout}, after 0 tokens; it sent no event, but: : keep-alive …"},
		{"empty-tokens", drip(head, inChunk(says(""))),
			"no token within {timeout}, after 0 tokens"},
		{"trailers-drip", drip(head+inChunk(says("a"))+"0\r\n", "A: b\r\n"),
			"the trailers did not end within {timeout}, after 1 token"},
		{"no-end", stall(head + inChunk(says("a")+stops)),
			"the response did not end within {timeout} after 1 token, though the model had " +
				"finished"},
		{"error-without-end", stall("HTTP/1.1 500 Oh\r\nContent-Length: 100\r\n\r\nno memory"),
			"the server answered 500 Oh: no memory"},
		{"error-drips", drip("HTTP/1.1 500 Oh\r\n\r\n", "no"), "the server answered 500 Oh: nono…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for timeout := brief; ; timeout *= 4 {
				e := endpoint(t, listen(t, tt.serve.serve), Options{Timeout: timeout})
				begun := time.Now()
				_, err := session(t, e).Ask(t.Context())
				if d := time.Since(begun); d > 2*testTimeout {
					t.Errorf("took %v", d)
				}
				want := strings.ReplaceAll(tt.want, "{timeout}", timeout.String())
				if err == nil {
					t.Fatal("no error")
				}
				got, _ := strings.CutPrefix(testgolden.Stable(err.Error()), asking)
				for match, by := range varies {
					got = match.ReplaceAllString(got, by)
				}
				if got == want {
					return
				}
				if timeout >= testTimeout/2 {
					t.Fatalf("%q, want %q", got, want)
				}
			}
		})
	}
}

func endless(before, every string) talk {
	return func(c net.Conn, _ int, _ *http.Request) bool {
		_, err := io.WriteString(c, before)
		for err == nil {
			_, err = io.WriteString(c, every)
		}
		return false
	}
}

func TestHostileFloods(t *testing.T) {
	for _, tt := range []struct{ name, before, every, want string }{
		{"comments", head, inChunk(strings.Repeat(": x\n", 10_000)),
			asking + "read the response after 0 tokens: the response is longer than 1 MiB"},
		{"chunk-sizes", head, strings.Repeat("1\r\n\n\r\n", 10_000),
			asking + "read the response after 0 tokens: the response is longer than 1 MiB"},
		{"trailers", head + "0\r\n", strings.Repeat("a: b\r\n", 10_000),
			asking + "read the response after 0 tokens: the trailers of the response are longer than 64 KiB"},
		{"line", head, inChunk(strings.Repeat("x", 10_000)),
			asking + "the server sent a line longer than 1 MiB in its events"},
		{"tokens", head, inChunk(strings.Repeat("data:{\"choices\":[{\"text\":1}]}\n\n", 1000)),
			asking + "the response has more than 2500 tokens"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := endpoint(t, listen(t, endless(tt.before, tt.every).serve), Options{})
			if e.mostTokens != 1_000_000 || e.mostBytes != 64<<20 {
				t.Fatalf("limits of %d tokens and %d bytes", e.mostTokens, e.mostBytes)
			}
			e.mostTokens, e.mostBytes = 2500, 1<<20
			if _, err := session(t, e).Ask(t.Context()); err == nil ||
				testgolden.Stable(err.Error()) != tt.want {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestNoConnection(t *testing.T) {
	refused := "http://" + testnet.TCP(t).String()
	_, err := session(t, endpoint(t, refused, Options{})).Ask(t.Context())
	if !errors.Is(err, unix.ECONNREFUSED) || testgolden.Stable(err.Error()) != asking+
		"dial tcp 127.0.0.1:PORT: connect: connection refused" {
		t.Errorf("%v", err)
	}
	_, err = endpoint(t, refused, Options{}).Probe(t.Context())
	if !errors.Is(err, unix.ECONNREFUSED) || testgolden.Stable(err.Error()) != "list the models of http://127.0.0.1:PORT/v1/chat/completions: dial tcp 127.0.0.1:PORT: connect: connection refused" {
		t.Errorf("probe: %v", err)
	}
	if hint.Of(err) != "start the server first, or publish "+
		"the container's port; toll ports PORT shows who listens" {
		t.Errorf("no remedy for %v", err)
	}
	var unknown *net.DNSError
	_, err = session(t, endpoint(t, "http://no-such-host.invalid", Options{})).Ask(t.Context())
	if !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
	silent := strings.Replace(listen(t, func(net.Conn) {}), "http:", "https:", 1)
	e := endpoint(t, silent, Options{Timeout: 100 * time.Millisecond})
	_, err = session(t, e).Ask(t.Context())
	if err == nil || testgolden.Stable(err.Error()) != "ask https://127.0.0.1:PORT/v1/chat/completions: no connection within 100ms" {
		t.Errorf("%v", err)
	}
	plain := strings.Replace(answering(t, good()), "http:", "https:", 1)
	e = endpoint(t, plain, Options{Timeout: 500 * time.Millisecond})
	_, err = session(t, e).Ask(t.Context())
	if err == nil {
		t.Error("TLS with a server that has none")
	}
}

func TestReset(t *testing.T) {
	for before, want := range map[string]string{
		"": "the server closed the connection without a response",
		head + inChunk(says("a")): "the server closed the connection after 1 token, before the " +
			"end " +
			"of its response",
	} {
		url := listen(t, talk(func(c net.Conn, _ int, _ *http.Request) bool {
			io.WriteString(c, before)
			c.(*net.TCPConn).SetLinger(0)
			return false
		}).serve)
		if _, err := session(t, endpoint(t, url, Options{})).Ask(t.Context()); err == nil ||
			testgolden.Stable(err.Error()) != asking+want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestPlainRequestToTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = quietLog()
	server.StartTLS()
	defer server.Close()
	_, err := session(t, endpoint(t, strings.Replace(server.URL, "https", "http", 1),
		Options{})).Ask(t.Context())
	if err == nil || testgolden.Stable(err.Error()) != asking+"the server answered 400 Bad Request: Client sent an HTTP request to an HTTPS server." {
		t.Errorf("%v", err)
	}
}

func TestStatusError(t *testing.T) {
	e := endpoint(t, answering(t, status("401 Unauthorized", "")), Options{})
	_, err := session(t, e).Ask(t.Context())
	var se *StatusError
	if !errors.As(err, &se) || se.Code != 401 {
		t.Errorf("%v", err)
	}
}
