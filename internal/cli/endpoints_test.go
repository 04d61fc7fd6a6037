package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const tollInPath = "toll"

type llm struct {
	*httptest.Server
	asked atomic.Int64 // for completions
	keys  sync.Map     // Authorization headers
}

// startLLM starts a server that sends tokens a few ms apart. before is called before the n-th
// response, from 0. If it returns false, the server closes the connection instead.
func startLLM(t *testing.T, before func(n int64) bool) *llm {
	t.Helper()
	m := &llm{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		m.keys.Store(r.Header.Get("Authorization"), true)
		if r.Method == http.MethodGet {
			io.WriteString(w, `{"data":[{"id":"tiny"}]}`)
			return
		}
		if n := m.asked.Add(1) - 1; before != nil && !before(n) {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Server", "tiny/1")
		var asked struct{ Stream bool }
		if _ = json.Unmarshal(b, &asked); !asked.Stream {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(
				w,
				`{"choices":[{"message":{"content":"0 1 2 3 4 5 6 `+
					`7"},"finish_reason":"stop"}],"usage":{"completion_tokens":8}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 8 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%d \"}}]}\n\n", i)
			_ = http.NewResponseController(w).Flush() // the client may have gone
			time.Sleep(2 * time.Millisecond)
		}
		io.WriteString(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(func() {
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

// startRelay starts a relay that holds back the server's data for a random time up to most.
func startRelay(t *testing.T, to string, seed uint64, most time.Duration) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		rng := rand.New(rand.NewPCG(seed, 1))
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(s, c)
				s.Close()
			}()
			delays := rand.New(rand.NewPCG(rng.Uint64(), 2))
			go func() {
				defer c.Close()
				b := make([]byte, 4096)
				for {
					n, err := s.Read(b)
					time.Sleep(time.Duration(delays.Int64N(int64(most))))
					if _, writeErr := c.Write(b[:n]); err != nil || writeErr != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// A key from the environment must reach only the server.
func TestStreamOverTwoRoutes(t *testing.T) {
	const key = "sk-hunter22"
	visited, goOn := make(chan bool), make(chan bool)
	m := startLLM(t, func(n int64) bool {
		if n == 2 { // the first two are the check's
			close(visited)
			<-goOn
		}
		return true
	})
	held := startRelay(t, m.Listener.Addr().String(), 5, 20*time.Millisecond)
	file := filepath.Join(t.TempDir(), "run.jsonl")
	routes := []string{"near=" + m.URL, "held=" + held + "/v1"}
	t.Setenv("TOLL_TEST_KEY", key)
	r := startToll(t, tollInPath, nil, append(
		append([]string{"stream"}, routes...), "--secret-env", "TOLL_TEST_KEY", "--tokens", "8",
		"--requests", "2",
		"--rounds", "6", "--seed", "3", "--save", file, "--details")...)
	var cmd string
	select {
	case <-visited:
		for _, c := range r.processes() {
			cmd += c
		}
		close(goOn)
	case <-time.After(patience):
		close(goOn)
		t.Fatalf("it measures nothing:\n%s", r.errOut.String())
	}
	code, took := r.wait(t, 2*patience)
	out, errOut := r.out.String(), r.errOut.String()
	if code != exitOK || errOut != "" {
		t.Fatalf("exit code %d\n%s\n%s", code, errOut, out)
	}
	t.Logf("it took %s:\n%s", took, out)
	for _, want := range []string{
		`(?m)^From here → tiny, responses of at most 8 tokens$`,
		`(?m)^  near +127\.0\.0\.1:\d+ .* 100 %$`,
		`(?m)^  held +127\.0\.0\.1:\d+ .* (worse|unclear)$`,
		`(?m)^6 rounds in .* as many as asked for`, `near against itself`,
		`Is it the network or the model\?`, `(?m)^  held: `,
		`their bytes are not counted`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q", want)
		}
	}
	for i, l := range strings.Split(out, "\n") {
		if n := len([]rune(l)); n > 100 {
			t.Errorf("line %d has %d columns", i+1, n)
		}
	}

	if _, ok := m.keys.Load("Bearer " + key); !ok {
		t.Error("the key did not reach the server")
	}
	m.keys.Range(func(k, _ any) bool {
		if k != "Bearer "+key {
			t.Errorf("the server was asked with %q", k)
		}
		return true
	})
	if !slices.Contains(strings.Fields(cmd), "TOLL_TEST_KEY") {
		t.Errorf("the processes of the run: %q", cmd)
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	again := startToll(t, tollInPath, nil, "report", file, "--details")
	if code, _ := again.wait(t, patience); code != exitOK || again.out.String() != out {
		t.Errorf("judged again, exit code %d:\n%s", code, again.out.String())
	}
	t.Setenv(columnsEnv, "80")
	brief := startToll(t, tollInPath, nil, "report", file)
	if code, _ := brief.wait(t, patience); code != exitOK || strings.Count(brief.out.String(), "\n") > 40 {
		t.Errorf("exit code %d, more than 40 lines:\n%s", code, brief.out.String())
	}
	as := startToll(t, tollInPath, nil, "report", file, "--format", "json")
	if code, _ := as.wait(t, patience); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, as.errOut.String())
	}
	for what, text := range map[string]string{"output": out, "file": string(kept),
		"JSON": as.out.String(), "command lines": cmd} {
		if strings.Contains(text, "hunter22") {
			t.Errorf("the key is in the %s", what)
		}
	}
	report := readReport(t, as.out.Bytes())
	if report.Study != sample.StudyEndpoints || len(report.Cells) != 2 || len(report.Failed) != 0 {
		t.Fatalf("%+v", report)
	}
	if slices.ContainsFunc(report.Found, func(f analysis.Finding) bool {
		return f.Code == analysis.AllWitnessed
	}) {
		t.Errorf("no route has hops: %+v", report.Found)
	}
	if slices.ContainsFunc(report.Warnings, func(w analysis.Warning) bool {
		return w.Code == analysis.OtherLoad
	}) {
		t.Errorf("the server's own work is no other load: %+v", report.Warnings)
	}
	for i, c := range report.Cells {
		if c.Witnessed || c.Baseline != (i == 0) || c.Metrics[workload.Words].Median != 8 ||
			c.Metrics[workload.ResponseTime].Median < 0.014 ||
			c.Facts["model"] != "tiny" || c.Facts["server"] != "tiny/1" {
			t.Errorf("%+v", c)
		}
	}
	if p := report.Cells[1].Metrics[workload.ResponseTime].Price; p == nil || p.Unit != "s" ||
		p.N != 6 {
		t.Errorf("price %+v", p)
	}
	if v, err := sample.Read(bytes.NewReader(kept)); err != nil || len(v.Visits) != 6*3 ||
		v.Visits[0].Client.Trips != 2 || v.Visits[0].Client.Connections != 1 {
		t.Errorf("%d visits, %v", len(v.Visits), err)
	}
}

// startGateway starts a gateway that gathers responses to requests for which gathers returns true,
// and compresses them if the client offers gzip. It passes on the others as they come.
func startGateway(t *testing.T, m *llm, gathers func(r *http.Request) bool) (url string) {
	t.Helper()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		ask, err := http.NewRequestWithContext(
			r.Context(), r.Method, m.URL+r.URL.Path, bytes.NewReader(b))
		if err != nil {
			t.Error(err)
			return
		}
		got, err := http.DefaultClient.Do(ask)
		if err != nil {
			return
		}
		defer got.Body.Close()
		w.Header().Set("Content-Type", got.Header.Get("Content-Type"))
		if !gathers(r) {
			piece := make([]byte, 4096)
			for {
				n, err := got.Body.Read(piece)
				_, _ = w.Write(piece[:n])
				_ = http.NewResponseController(w).Flush()
				if err != nil {
					return
				}
			}
		}
		whole, _ := io.ReadAll(got.Body)
		if r.Header.Get("Accept-Encoding") == "gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(whole)
			_ = z.Close()
			return
		}
		_, _ = w.Write(whole)
	}))
	t.Cleanup(gateway.Close)
	return gateway.URL
}

func TestStreamGateway(t *testing.T) {
	m := startLLM(t, nil)
	for name, tt := range map[string]struct {
		gathers func(r *http.Request) bool
		flags   []string
		named   bool
	}{
		"gathers": {func(*http.Request) bool { return true }, nil, true},
		"gathers-compressed": {func(r *http.Request) bool {
			return r.Header.Get("Accept-Encoding") == "gzip"
		}, []string{"--compressed"}, true},
		"not-offered": {func(r *http.Request) bool {
			return r.Header.Get("Accept-Encoding") == "gzip"
		}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			gateway := startGateway(t, m, tt.gathers)
			testwait.Unhindered(t, patience, func(u testing.TB) {
				r := startToll(t, tollInPath, nil, append([]string{"stream", "direct=" + m.URL,
					"gateway=" + gateway, "--tokens", "8", "--rounds", "8",
					"--seed", "3", "--quiet", "--format", "json"}, tt.flags...)...)
				if code, _ := r.wait(t, 2*patience); code != exitOK {
					t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
				}
				got := readReport(t, r.out.Bytes())
				named := finds(got, endpoints.BlameNetwork, "gateway", "") &&
					finds(got, endpoints.RouteHolds, "gateway", "")
				if os.Geteuid() == 0 { // toll sees tokens leave it
					named = finds(got, endpoints.PartBlamed, "gateway", sample.EvidenceRelay)
				}
				if named != tt.named {
					u.Errorf("named: %v, want %v: %+v", named, tt.named, got.Found)
				}
				if packs := slices.ContainsFunc(got.Warnings, func(w analysis.Warning) bool {
					return w.Text == "over gateway the stream is compressed with gzip: tokens come when "+
						"the compressor flushes"
				}); packs != (tt.flags != nil) {
					t.Errorf("compression is said: %v: %+v", packs, got.Warnings)
				}
			})
		})
	}
}

// nginx buffers unless it is told not to, and the answer names what to set.
func TestStreamThroughNginx(t *testing.T) {
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("nginx is not installed")
	}
	testversions.Ran(t, "nginx", testversions.Of("nginx", "-v"), "`toll stream` through it")
	m := startLLM(t, nil)
	dir, at := t.TempDir(), testnet.TCP(t)
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, "daemon off; pid %s/pid; error_log %[1]s/log;\n"+
		"events {}\nhttp { access_log off; client_body_temp_path %[1]s; proxy_temp_path %[1]s;\n"+
		"fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;\n"+
		"server { listen %s; location / { proxy_pass %s; } } }\n", dir, at, m.URL),
		0o600); err != nil {
		t.Fatal(err)
	}
	nginx := exec.Command("nginx", "-p", dir, "-e", filepath.Join(dir, "log"), "-c", config)
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = nginx.Process.Signal(syscall.SIGTERM)
		_ = nginx.Wait()
	})
	testwait.Until(t, patience, "nginx listens", func() bool {
		c, err := net.Dial("tcp", at.String())
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	testwait.Unhindered(t, patience, func(u testing.TB) {
		r := startToll(t, tollInPath, nil, "stream", "http://"+at.String(), "--tokens", "8",
			"--rounds", "6", "--quiet", "--format", "json")
		if code, _ := r.wait(t, 2*patience); code != exitOK {
			t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
		}
		got := readReport(t, r.out.Bytes())
		named := finds(got, endpoints.BlameHeld, at.String(), "")
		if os.Geteuid() == 0 { // toll sees when tokens leave nginx
			named = finds(got, endpoints.PartBlamed, at.String(), sample.EvidenceRelay)
		}
		if !named || !finds(got, endpoints.Gateway, at.String(), endpoints.Nginx) {
			u.Errorf("%+v", got.Found)
		}
	})
}

func readReport(t *testing.T, b []byte) analysis.Report {
	t.Helper()
	var r analysis.Report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return r
}

// finds reports whether a finding with the code, and with what unless that is "", is about the cell
// with the label.
func finds(r analysis.Report, code, label, what string) bool {
	return slices.ContainsFunc(r.Found, func(f analysis.Finding) bool {
		return f.Code == code && (what == "" || f.What == what) &&
			slices.ContainsFunc(f.Cells, func(i int) bool { return r.Cells[i].Label() == label })
	})
}

func TestStreamBatch(t *testing.T) {
	m := startLLM(t, nil)
	held := startRelay(t, m.Listener.Addr().String(), 5, 20*time.Millisecond)
	for flag, loads := range map[string][]string{"--load=chat,batch": {workload.Chat, workload.Batch},
		"--load=batch": {workload.Batch}} {
		r := startToll(t, tollInPath, nil, "stream", "near="+m.URL, "held="+held, flag, "--tokens",
			"8", "--rounds", "5", "--format", "json")
		if code, _ := r.wait(t, 2*patience); code != exitOK {
			t.Fatalf("%s: exit code %d\n%s\n%s", flag, code, r.errOut.String(), r.out.String())
		}
		report := readReport(t, r.out.Bytes())
		var got []string
		for _, c := range report.Cells {
			if c.Mode == "held" {
				got = append(got, c.Load)
			}
			if c.Load == workload.Batch && (c.Metrics[workload.Words].Median != 8 ||
				c.Metrics[workload.ResponseTime].Median <= 0) {
				t.Errorf("%+v", c)
			}
			if p := c.Metrics[workload.ResponseTime].Price; c.Mode == "held" &&
				(p == nil || p.N != 5) {
				t.Errorf("%s: price %+v", c.Load, p)
			}
		}
		if strings.Join(got, " ") != strings.Join(loads, " ") || len(report.Failed) > 0 {
			t.Errorf("%s: %q, failed %+v", flag, got, report.Failed)
		}
	}
}

func TestStreamInterrupted(t *testing.T) {
	measured := make(chan bool, 1)
	m := startLLM(t, func(n int64) bool {
		if n == 16 { // two for the check, and some rounds of three visits
			measured <- true
		}
		return true
	})
	r := startToll(t, tollInPath, nil, "stream", "a="+m.URL, "b="+m.URL+"/v1", "--rounds",
		"1000000")
	select {
	case <-measured:
	case <-time.After(patience):
		t.Fatalf("it measures nothing:\n%s", r.errOut.String())
	}
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code, took := r.wait(t, patience)
	t.Logf("it ended after %s", took)
	out := r.out.String()
	if code != 130 || r.errOut.Len() > 0 {
		t.Errorf("exit code %d\n%s", code, r.errOut.String())
	}
	for _, want := range []string{"interrupted", "\n  a ", "\n  b ", "Warnings",
		"a and b have the same address"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	r.gone(t)
}

func TestStreamInterruptedAtCheck(t *testing.T) {
	asked := make(chan bool, 1)
	let := make(chan bool)
	defer close(let)
	m := startLLM(t, func(int64) bool {
		asked <- true
		<-let
		return false
	})
	r := startToll(t, tollInPath, nil, "stream", m.URL)
	<-asked
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code, _ := r.wait(t, patience); code != 130 || r.out.Len()+r.errOut.Len() > 0 {
		t.Errorf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
}

func TestStreamSomeVisitsFail(t *testing.T) {
	m := startLLM(t, func(n int64) bool { return n < 6 || n%4 != 0 })
	r := startToll(t, tollInPath, nil, "stream", "a="+m.URL, "--rounds", "12", "--format", "json")
	code, _ := r.wait(t, 2*patience)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	report := readReport(t, r.out.Bytes())
	if len(report.Cells) != 1 || report.Plan.Rounds != 12 {
		t.Fatalf("%+v", report)
	}
	found := ""
	for _, w := range report.Cells[0].Warnings {
		if w.Code == "failed-visits" {
			found = w.Text
		}
	}
	// A visit that is made again takes a request more: which rounds fail is not known.
	want := `^[1-6] of 12 visits failed and are left out, the last one in round \d+: ask ` +
		`http://127\.0\.0\.1:`
	if !regexp.MustCompile(want).MatchString(found) {
		t.Errorf("warnings %+v", report.Cells[0].Warnings)
	}
}

func TestStreamServerDies(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
	}{{"budget", []string{"--budget", "10m"}}, {"rounds", []string{"--rounds", "12"}}} {
		t.Run(tt.name, func(t *testing.T) {
			var m *llm
			m = startLLM(t, func(n int64) bool {
				if n == 20 { // two for the check, and six rounds of three visits
					m.Listener.Close()
					go m.CloseClientConnections()
				}
				return n < 20
			})
			r := startToll(t, tollInPath, nil, append(
				[]string{"stream", "a=" + m.URL, "b=" + m.URL, "--precision", "0.01%", "--format",
					"json"}, tt.args...)...)
			code, took := r.wait(t, 2*patience)
			t.Logf("it took %s", took)
			if code != exitCells {
				t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
			}
			report := readReport(t, r.out.Bytes())
			if len(report.Cells) != 2 || report.Plan.EndedBy != sample.EndedByFailure {
				t.Errorf("%d cells, ended by %s", len(report.Cells), report.Plan.EndedBy)
			}
			for _, c := range report.Cells {
				// Visits that a busy machine hinders are made again, so there may be fewer rounds.
				if n := len(c.Metrics[workload.ResponseTime].Rounds); n < 4 || n > 6 ||
					len(c.Warnings) == 0 {
					t.Errorf("%s: %d rounds, warnings %+v", c.Mode, n, c.Warnings)
				}
			}
		})
	}
}

func TestHostileServers(t *testing.T) {
	const (
		red     = "\x1b[31m\r\nred\x07"
		closed  = "the server closed the connection"
		foreign = "this is not PostgreSQL: it speaks HTTP\ntoll: hint: check the port"
	)
	shown := regexp.MustCompile(`^[^[:cntrl:]]{1,600}\n(toll: hint: [^[:cntrl:]]+\n)?$`)
	for _, tt := range []struct{ name, answer, stream, sql string }{ // stream is a regexp
		{"garbage", strings.Repeat("\xff\x00\x1b", 1000),
			`read the response: malformed .+…\n.+ needs an HTTP server; .+`, closed},
		{"closes", "", closed + ` without a response\n.+ its URL begins with https://; .+`, closed},
		{"html", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>" +
			red, `the server does not stream: it answered text/html and not text/event-stream: ` +
			`<html>\\x1b\[31m red\\a\n.+ needs an OpenAI-compatible server; .+`, foreign},
		{"error", "HTTP/1.1 500 " + "Oh\r\nConnection: close\r\n\r\n" +
			strings.Repeat(red, 100_000), `the server answered 500 Oh: (\\x1b\[31m red\\a)+\\x1b…`, foreign},
		{"unauthorized",
			"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n{\"error\":\"no\\nkey\"}",
			`the server answered 401 Unauthorized: no key\ntoll: hint: --secret-env NAME, .+`, foreign},
		{"redirects",
			"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n",
			`the server answered 302 and redirects to http://10\.0\.0\.1/, which is not followed`, foreign},
		{"endless-head", "HTTP/1.1 200 OK\r\n" +
			strings.Repeat("A: "+red[6:]+strings.Repeat("b", 1000)+"\r\n", 100),
			`read the response: malformed .+bbb…`, foreign},
		{"long-line", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " +
			strings.Repeat("x", 2<<20),
			`the server sent a line longer than 1 MiB in its events`, foreign},
		{"no-token", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: [DONE]\n\n",
			`the server answered without a token`, foreign},
		{"stalls",
			"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " +
				"{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n+stall",
			`no token within 300ms, after 1 token`, foreign},
		{"postgres", "E\x00\x00\x00\x10SFATAL\x00\x00",
			`read the response: malformed .+\n.+ needs an HTTP server; .+`, closed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := testnet.Serve(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 64<<10))
				answer, stalls := strings.CutSuffix(tt.answer, "+stall")
				io.WriteString(c, answer)
				if stalls {
					_, _ = io.Copy(io.Discard, c)
				}
				_ = c.(*net.TCPConn).CloseWrite()
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				_, _ = io.Copy(io.Discard, c)
			}).String()
			quoted, timeout := regexp.QuoteMeta(at), "10s" // for a busy machine
			if tt.name == "stalls" {
				timeout = "300ms"
			}
			for _, c := range []struct{ command, url, says string }{
				{"stream", "http://" + at, "ask http://" + quoted + "/v1/chat/completions: " + tt.stream},
				{"sql", "postgres://app@" + at + "/shop", "connect to " + quoted + ": " + tt.sql}} {
				testwait.Unhindered(t, patience, func(u testing.TB) { // it may time out earlier
					r := startToll(t, tollInPath, nil, c.command, "bad="+c.url, "--timeout", timeout,
						"--rounds", "1")
					code, _ := r.wait(t, patience)
					got := r.errOut.String()
					if code != exitNothing || r.out.Len() > 0 || !shown.MatchString(got) {
						t.Errorf("%s: exit code %d\n%q\n%s", c.command, code, got, r.out.String())
					}
					want := "^toll: error: bad: " + c.says + "\n$"
					if !regexp.MustCompile(want).MatchString(got) {
						u.Errorf("%s: %q, want %s", c.command, got, want)
					}
				})
			}
		})
	}
}
