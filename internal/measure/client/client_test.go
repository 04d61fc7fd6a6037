package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/database"
	"github.com/bridgetoll/bridgetoll/internal/measure/openai"
	"github.com/bridgetoll/bridgetoll/internal/measure/program"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testwait"
)

const (
	patience = 60 * time.Second
	brief    = time.Millisecond
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == program.Arg {
		if err := program.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// names returns those of figures, in order.
func names(figures map[string]float64) (out []string) {
	for n := range figures {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func TestChat(t *testing.T) {
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			io.WriteString(w, `{"data":[{"id":"tiny"}]}`)
			return
		}
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v1/chat/completions" || !strings.Contains(string(b), `"model":"tiny"`) || r.Header.Get("Authorization") != "Bearer sk-hunter22" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"no such key: %s"}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 5 {
			io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}
		io.WriteString(w, "data: [DONE]\n\n")
	}))
	s.Config.ConnState = func(_ net.Conn, to http.ConnState) {
		if to == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	c, err := Chat(s.URL, openai.Options{Key: "sk-hunter22"}, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := int64(0)
	for i := range 3 {
		got, err := c.Visit(context.Background(), brief)
		if err != nil || strings.Join(names(got), ",") != "connecting,first token,response,token gap" || got["response"] < 0.004 { // a busy machine hands on several tokens at once: no gap
			t.Errorf("%v, %v", got, err)
		}
		now := connections.Load()
		if i > 0 && now != before+1 { // the first visit also checks
			t.Errorf("visit %d made %d connections", i, now-before)
		}
		before = now
	}
	if len(c.Metrics) != 4 || c.Metrics[0].Unit != "s" || c.Metrics[0].Higher {
		t.Errorf("%+v", c.Metrics)
	}
	wrong, err := Chat(s.URL, openai.Options{Key: "sk-wrong-hunter22"}, 64)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Visit(context.Background(), brief); err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("a wrong key: %v", err)
	}
	if _, err := Chat(s.URL+"/x", openai.Options{}, 64); err == nil {
		t.Error("a path that is none")
	}
}

// What cannot be meant is known before anything is asked.
func TestSQL(t *testing.T) {
	if _, err := SQL("postgres://a:secret@127.0.0.1/b", database.Options{Queries: 1}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a password: %v", err)
	}
	c, err := SQL("postgres://a@127.0.0.1:1/b", database.Options{Queries: 20})
	if err != nil || len(c.Metrics) != 2 || c.Metrics[1].Name != "page" || c.Metrics[1].Unit != "s" || !strings.Contains(c.Note, "20 queries") {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := c.Visit(context.Background(), brief); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody there: %v", err)
	}
}

func needsNamespaces(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root makes namespaces of PIDs")
	}
}

var here = netip.MustParseAddrPort("127.0.0.1:8080")

// A command's metrics are what it prints, or how long it takes; what it leaves running ends.
func TestRun(t *testing.T) {
	needsNamespaces(t)
	gauge, err := program.ParseGauge(`rate:/s=rate ([\d.]+)`)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		command Command
		want    string // names of figures; "": it fails
		fault   string
	}{
		"time":    {Command{Line: "test {addr} = 127.0.0.1:8080 -a {host}:{port} = {addr} && sleep 0.01"}, "time", ""},
		"gauge":   {Command{Line: "echo rate {seconds}5", Seconds: 2, Gauges: []sample.Gauge{gauge}}, "rate", ""},
		"no rate": {Command{Line: "echo nothing", Gauges: []sample.Gauge{gauge}}, "", "no metric rate"},
		"fails":   {Command{Line: "echo too bad >&2; exit 3"}, "", "the command failed (exit status 3); it said: too bad"},
		"missing": {Command{Line: "/nonexistent/program"}, "", "not found"},
		"endless": {Command{Line: "sleep 1000", Timeout: 50 * time.Millisecond}, "", "50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.command.Timeout == 0 {
				tt.command.Timeout = patience
			}
			c := Run(tt.command, here)
			for range 2 {
				got, err := c.Visit(context.Background(), brief)
				if strings.Join(names(got), ",") != tt.want || (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
					t.Errorf("%v, %v", got, err)
				}
				if got["rate"] != map[bool]float64{name == "gauge": 25}[true] {
					t.Errorf("%v", got)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Interrupted and closed, nothing of a command is left.
func TestRunInterrupted(t *testing.T) {
	needsNamespaces(t)
	fifo := filepath.Join(t.TempDir(), "held")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c := Run(Command{Line: "(sleep 1000 & exec sleep 1000) >" + fifo, Timeout: patience}, here)
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan error, 1)
	go func() { _, err := c.Visit(ctx, brief); got <- err }()
	f, err := os.Open(fifo) // when both hold it
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(f); err != nil || len(b) > 0 { // ends when nobody holds it
		t.Errorf("%q, %v", b, err)
	}
}

// The client of a recipe, against a real server.
func TestRunRecipe(t *testing.T) {
	needsNamespaces(t)
	for _, need := range []string{"redis-server", "redis-benchmark"} {
		if _, err := exec.LookPath(need); err != nil {
			pathtest.SkipOrFail(t, "%s is not installed", need)
		}
	}
	at := testnet.TCP(t)
	server := exec.Command("redis-server", "--port", fmt.Sprint(at.Port()), "--bind", "127.0.0.1", "--save", "")
	server.Dir = t.TempDir()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at.Port())
	testwait.Until(t, patience, "redis listens", func() bool {
		c, err := net.Dial("tcp", to.String())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	command, err := OfRecipe("redis")
	if err != nil {
		t.Fatal(err)
	}
	command.Seconds, command.Timeout = 0, patience
	command.Line = strings.Replace(command.Line, "50000", "0 + 500", 1)
	c := Run(command, to)
	defer c.Close()
	got, err := c.Visit(context.Background(), brief)
	if err != nil || got["requests"] <= 0 || got["p50"] <= 0 || got["p99"] < got["p50"] || c.Name != "run redis" || !c.Metrics[0].Higher || c.Metrics[1].Higher {
		t.Errorf("%v, %v, %+v", got, err, c)
	}
	for name, says := range map[string]string{"netperf": "a second port", "qperf": "a second port", "redos": "unknown recipe"} {
		if _, err := OfRecipe(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
