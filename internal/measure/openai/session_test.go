package openai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

func TestSessionKeepsItsConnection(t *testing.T) {
	url := listen(t, talk(func(c net.Conn, n int, r *http.Request) bool {
		io.WriteString(c, good())
		return true
	}).serve)
	s := session(t, endpoint(t, url, Options{}))
	for i := range 3 {
		r, err := s.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if (r.Connect == 0) != (i > 0) || len(r.Arrivals) != 3 ||
			"http://"+r.Remote.String() != url {
			t.Errorf("ask %d: %+v", i, r)
		}
		if r.RTT <= 0 {
			t.Errorf("ask %d: no round-trip time", i)
		}
	}
	if s.opens != 1 {
		t.Errorf("%d connections", s.opens)
	}
}

// However a connection ends after a response, the next request succeeds.
func TestSessionOpensAnother(t *testing.T) {
	whole := func(c net.Conn, extra string) { io.WriteString(c, good()+extra) }
	for _, tt := range []struct {
		name  string
		serve talk
	}{
		{"closed", func(c net.Conn, _ int, _ *http.Request) bool { whole(c, ""); return false }},
		{"connection-close", func(c net.Conn, _ int, _ *http.Request) bool {
			io.WriteString(c, strings.Replace(good(), "OK\r\n", "OK\r\nConnection: close\r\n", 1))
			return true
		}},
		{"bytes-behind-it", func(c net.Conn, _ int, _ *http.Request) bool {
			whole(c, "HTTP/1.1 408 Request Timeout\r\n\r\n")
			return true
		}},
		{"no-end", func(c net.Conn, _ int, _ *http.Request) bool {
			io.WriteString(c, strings.TrimSuffix(good(), "0\r\n\r\n"))
			return true
		}},
		{"endless-rest", func(c net.Conn, _ int, _ *http.Request) bool {
			io.WriteString(c, strings.TrimSuffix(good(), "0\r\n\r\n"))
			for {
				_, err := io.WriteString(c, inChunk(strings.Repeat(": x\n", 10_000)))
				if err != nil {
					return false
				}
			}
		}},
		{"closed-at-the-next", func(c net.Conn, n int, _ *http.Request) bool {
			if n == 0 {
				whole(c, "")
			}
			return n == 0
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := session(t, endpoint(t, listen(t, tt.serve.serve), Options{}))
			for i := range 2 {
				r, err := s.Ask(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if r.Connect == 0 || len(r.Arrivals) != 3 {
					t.Errorf("ask %d: %+v", i, r)
				}
			}
		})
	}
}

func TestEventBeforeItsChunkEnds(t *testing.T) {
	e := endpoint(t, "http://server", Options{})
	two := inChunk(says("a") + says("b"))
	cut := len(two) - len(says("b")) - 2
	piped(e, head, two[:cut], two[cut:], inChunks(stops+done))
	r, err := session(t, e).Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Arrivals) != 2 || r.Glued != 0 {
		t.Errorf("%+v", r)
	}
}

func TestGlued(t *testing.T) {
	e := endpoint(t, "http://server", Options{})
	piped(e, head+inChunk(says("a")), inChunk(says("b"))+inChunk(says("c")+says("d")),
		inChunk(says("e")+stops), inChunks(says("f"), done))
	r, err := session(t, e).Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Arrivals) != 6 || r.Glued != 3 {
		t.Errorf("%d glued of %d", r.Glued, len(r.Arrivals))
	}
	if a := r.Arrivals; a[1] != a[2] || a[2] != a[3] || a[0] > a[1] {
		t.Errorf("%v", a)
	}
}

// The server's pauses are lower bounds of what is measured.
func TestTimes(t *testing.T) {
	const pause = 30 * time.Millisecond
	url := listen(t, talk(func(c net.Conn, _ int, _ *http.Request) bool {
		time.Sleep(pause)
		io.WriteString(c, head+inChunk(says("a")))
		time.Sleep(pause)
		io.WriteString(c, inChunk(": keep-alive\n\n"))
		time.Sleep(pause)
		io.WriteString(c, inChunk(says("b"))+inChunk(stops))
		time.Sleep(pause)
		io.WriteString(c, inChunks(done))
		return true
	}).serve)
	r, err := session(t, endpoint(t, url, Options{})).Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Arrivals) != 2 || r.Arrivals[0] < pause || r.Arrivals[1] < 3*pause || r.End < 4*pause {
		t.Errorf("%+v", r)
	}
}

func TestKindsOfEnds(t *testing.T) {
	plain := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	for _, tt := range []struct{ name, raw string }{
		{"no-done", head + inChunks(says("a"), stops)},
		{"done-without-finish", head + inChunks(says("a"), done)},
		{"crlf", strings.ReplaceAll(head+"X\n\n", "X\n\n",
			inChunks(strings.ReplaceAll(says("a")+stops+done, "\n", "\r\n")))},
		{"until-close", plain + "\r\n" + says("a") + stops},
		{"length", plain + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(says("a")+stops)) +
			says("a") + stops},
		{"http-1.0", "HTTP/1.0 200 OK\r\nContent-Type: Text/Event-Stream;charset=utf-8\r\n\r\n" +
			says("a") + stops + done},
		{"informational", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + head +
			inChunks(says("a"), stops, done)},
		{"identity", strings.Replace(head, "\r\n", "\r\nContent-Encoding: identity\r\n", 1) +
			inChunks(says("a"), done)},
		{"no-event-behind-done", head + inChunks(says("a"), done+says("b")+"data: {\n\n")},
		{"extensions-and-trailers", head + "05;a=b\r\ndata:\r\n" +
			inChunk(strings.TrimPrefix(says("a"), "data:")+done) + "0\r\nA: b\r\n\r\n"},
		{"ping-events", head + inChunks("event: ping\ndata: {}\n\n", says("a"), done)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := session(t, endpoint(t, answering(t, tt.raw), Options{})).Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Arrivals) != 1 {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	for path, want := range map[string]string{
		"":                     `{"model":"m","messages":[{"role":"user","content":"say \"x\""}],"max_tokens":7,"temperature":0,"seed":1,"stream":true,"stream_options":{"include_usage":true}}`,
		"/x/completions?v=a b": `{"model":"m","prompt":"say \"x\"","max_tokens":7,"temperature":0,"seed":1,"stream":true,"stream_options":{"include_usage":true}}`,
	} {
		var got *http.Request
		url := listen(t, talk(func(c net.Conn, _ int, r *http.Request) bool {
			got = r
			io.WriteString(c, good())
			return false
		}).serve)
		s := session(t, endpoint(t, url+path,
			Options{Model: "m", Prompt: `say "x"`, MaxTokens: 7, Key: " k-1\n"}))
		if _, err := s.Ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(got.Body)
		if string(body) != want {
			t.Errorf("body %s", body)
		}
		h := got.Header
		if got.Method != "POST" || h.Get("Accept") != "text/event-stream" ||
			h.Get("Content-Type") != "application/json" ||
			h.Get("User-Agent") != "toll" || h.Get("Authorization") != "Bearer k-1" ||
			h.Get("Accept-Encoding") != "identity" {
			t.Errorf("%s %v", got.Method, h)
		}
		if path != "" && got.RequestURI != "/x/completions?v=a%20b" {
			t.Errorf("asked %s", got.RequestURI)
		}
	}
}

func TestMark(t *testing.T) {
	var got *http.Request
	url := listen(t, talk(func(c net.Conn, _ int, r *http.Request) bool {
		got = r
		io.WriteString(c, good())
		return true
	}).serve)
	s := session(
		t,
		endpoint(t, url, Options{Model: "m", Mark: func() uint32 { return 1234567890 }}),
	)
	r, err := s.Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(got.Body)
	if id := got.Header.Get("X-Request-Id"); id != "toll-1234567890" ||
		string(body) != `{"model":"m","messages":[{"role":"user","content":"Count from one to one thousand in words, without a pause."}],"max_tokens":128,"temperature":0,"seed":1234567890,"stream":true,"stream_options":{"include_usage":true}}` {
		t.Errorf("ID %q, body %s", id, body)
	}
	if r.Mark != 1234567890 || len(r.Texts) != len(r.Arrivals) || r.Texts[0].Len == 0 ||
		r.Began.IsZero() || got.RemoteAddr != "" && r.Local.String() != got.RemoteAddr {
		t.Errorf("%+v", r)
	}
}

func model(list string, asked *atomic.Value) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		if list == "" {
			http.Error(w, "no such page", http.StatusNotFound)
			return
		}
		io.WriteString(w, list)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Model string }
		json.NewDecoder(r.Body).Decode(&ask)
		asked.Store(ask.Model)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Server", "ex\tample/1")
		w.Header().Set("Via", "1.1 Ca\tddy")
		for _, ev := range []string{says("a"), stops, done} {
			io.WriteString(w, ev)
			w.(http.Flusher).Flush()
		}
	})
	return mux
}

func TestProbe(t *testing.T) {
	for _, tt := range []struct{ name, option, list, want string }{
		{"first-listed", "", `{"object":"list","data":[{"id":"tiny"},{"id":"large"}]}`, "tiny"},
		{"given", "mine", `{"data":[{"id":"tiny"}]}`, "mine"},
		{"no-list", "", "", "default"},
		{"empty-list", "", `{"data":[]}`, "default"},
		{"odd-list", "", `<html>`, "default"},
		{"long-name", "", `{"data":[{"id":"` + strings.Repeat("x", 2000) + `"}]}`, "default"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked atomic.Value
			server := httptest.NewServer(model(tt.list, &asked))
			defer server.Close()
			e := endpoint(t, server.URL, Options{Model: tt.option})
			f, err := e.Probe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if f.Model != tt.want || asked.Load() != tt.want || f.Server != "ex ample/1" ||
				f.Via != "1.1 Ca ddy" || f.TLS != "" || f.HTTP != "HTTP/1.1" || "http://"+f.Remote.String() != server.URL {
				t.Errorf("%+v, asked for %v", f, asked.Load())
			}
			asked.Store("")
			if _, err := session(t, e).Ask(t.Context()); err != nil || asked.Load() != tt.want {
				t.Errorf("a session asks for %v: %v", asked.Load(), err)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	var asked atomic.Value
	server := httptest.NewUnstartedServer(model("", &asked))
	server.EnableHTTP2 = true // which must not be agreed on
	server.Config.ErrorLog = quietLog()
	server.StartTLS()
	defer server.Close()
	e := endpoint(t, server.URL, Options{})
	if _, err := e.Probe(t.Context()); err == nil || testgolden.Stable(err.Error()) != "list the models of https://127.0.0.1:PORT/v1/chat/completions: open TLS: tls: failed to verify certificate: x509: certificate signed by unknown authority" {
		t.Fatalf("a foreign certificate: %v", err)
	} else if h := new(hinted); !errors.As(err, &h) || h.hint != "let SSL_CERT_FILE name the file of its CA, or of the certificate itself if that is its own CA ("+remedy.AsRoot("SSL_CERT_FILE=CA.pem toll …")+")" {
		t.Errorf("no hint: %v", err)
	}
	other := *server.Certificate()
	for want, names := range map[string][]string{"the URL needs a name of the certificate, such as a.example (an entry in /etc/hosts can lead it to the address); if it is not trusted then, let SSL_CERT_FILE name the file of its CA, or of the certificate itself if that is its own CA": {"a.example"},
		"the server needs a certificate with a subjectAltName: its common name does not count": nil} {
		other.DNSNames, other.IPAddresses = names, nil
		if got := CertificateHint(&tls.CertificateVerificationError{Err: x509.HostnameError{
			Certificate: &other, Host: "b.example"}}); got != want {
			t.Errorf("for another name than %v: %q", names, got)
		}
	}
	if got := CertificateHint(io.EOF); got != "" {
		t.Errorf("for another error: %q", got)
	}
	e.roots = x509.NewCertPool()
	e.roots.AddCert(server.Certificate())
	f, err := e.Probe(t.Context())
	if err != nil || f.TLS != tls.VersionName(tls.VersionTLS13) || f.HTTP != "HTTP/1.1" {
		t.Fatalf("%+v: %v", f, err)
	}
	s := session(t, e)
	for i := range 2 {
		r, err := s.Ask(t.Context())
		if err != nil || len(r.Arrivals) != 1 || (r.Connect == 0) != (i == 1) || r.RTT <= 0 {
			t.Fatalf("ask %d: %+v, %v", i, r, err)
		}
	}
}

func TestCancel(t *testing.T) {
	why := errors.New("the user has gone")
	for _, tt := range []struct{ name, raw string }{
		{"before-the-head", ""},
		{"in-the-stream", head + inChunk(says("a"))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			url := listen(t, talk(func(c net.Conn, _ int, _ *http.Request) bool {
				io.WriteString(c, tt.raw)
				cancel(why)
				return true
			}).serve)
			if _, err := session(t, endpoint(t, url, Options{})).Ask(ctx); !errors.Is(err, why) {
				t.Errorf("%v", err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := session(t, endpoint(t, "http://"+testnet.TCP(t).String(), Options{})).Ask(ctx)
	if !errors.Is(err, why) {
		t.Errorf("before connecting: %v", err)
	}
}
