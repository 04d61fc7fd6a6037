package llm

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/gatewaytest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

// pageEnv names the page whose table of gateways TestGateways writes; unset: it writes none.
const pageEnv = "TOLL_GATEWAYS_PAGE"

// gateway is a gateway in front of the model.
type gateway struct {
	name, build, setting string
	holds                bool // tokens back
	// start starts it, or skips the test if this machine neither has nor gets it.
	start func(t *testing.T, server string) (addr, version string)
}

// gateways returns all gateways. What a machine lacks is skipped in its test.
func gateways() (out []gateway) {
	for _, g := range gatewaytest.All {
		add := func(build string, get func(*testing.T) gatewaytest.Build) {
			for _, x := range append([]gatewaytest.Setting{{Holds: g.Holds}}, g.Settings...) {
				if x.New && build == installed {
					continue
				}
				out = append(out, gateway{g.Program, build, x.Text, x.Holds,
					func(t *testing.T, server string) (addr, version string) {
						t.Helper()
						b := get(t)
						testversions.Ran(t, g.Program, b.Version, "`toll stream` through it")
						return g.Start(t, b, x.Text, server), b.Version
					}})
			}
		}
		if g.Says != "" {
			add(installed, g.Installed)
		}
		wheel := g.Wheels[len(g.Wheels)-1]
		_, version, _ := strings.Cut(wheel, "==")
		add(version, func(t *testing.T) gatewaytest.Build { t.Helper(); return g.Install(t, wheel) })
	}
	goVersion := strings.TrimPrefix(runtime.Version(), "go")
	for _, interval := range []time.Duration{0, -1} {
		setting := ""
		if interval != 0 {
			setting = fmt.Sprintf("FlushInterval: %d", interval)
		}
		out = append(out, gateway{"Go's ReverseProxy", goVersion, setting, false,
			func(t *testing.T, server string) (addr, version string) {
				t.Helper()
				to := &url.URL{Scheme: "http", Host: server}
				s := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: interval,
					Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
				t.Cleanup(s.Close)
				return s.Listener.Addr().String(), goVersion
			}})
	}
	return out
}

// installed is the build of a gateway that is in PATH.
const installed = "installed"

// asks returns the version of HTTP in which a gateway asks its server.
func (g gateway) asks(t *testing.T) (version string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version = strings.TrimPrefix(r.Proto, "HTTP/")
		_, _ = io.WriteString(w, "{}")
	}))
	defer s.Close()
	addr, _ := g.start(t, s.Listener.Addr().String())
	r, err := http.Post("http://"+addr+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"model","messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	return version
}

const (
	tokensEach = 48
	rounds     = 5
)

// measure returns what toll sees of the model's tokens over a gateway, in each round.
func (s set) measure(t *testing.T, addr string) (out []*sample.Evidence) {
	t.Helper()
	t.Setenv("TOLL_HISTORY", "off")
	file := filepath.Join(t.TempDir(), "results")
	s.run(t, nil, 1, "stream", "gateway=http://"+addr, "--tokens", strconv.Itoa(tokensEach),
		"--rounds", strconv.Itoa(rounds), "--save", file, "--force")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := sample.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range f.Visits {
		if v.Evidence == nil || v.Evidence.Response == nil {
			t.Fatalf("nothing was seen in round %d", v.Round)
		}
		if why, ok := v.Evidence.Clear(); !ok {
			t.Fatal(why)
		}
		out = append(out, v.Evidence)
	}
	return out
}

// passing is what a gateway does to the tokens of most responses.
type passing struct {
	first, last float64 // s; for which it holds the first token, and all of the server's come
	token       float64 // s; for which it holds a token
	gap         float64 // s; between the server's
	pieces      float64 // in which they arrive, as a share of their number
}

func passed(rounds []*sample.Evidence) passing {
	middle := func(of func(*sample.Evidence) float64) float64 {
		var xs []float64
		for _, e := range rounds {
			xs = append(xs, of(e))
		}
		slices.Sort(xs)
		return xs[len(xs)/2]
	}
	part := func(name string, of func(sample.EvidencePart) float64) func(*sample.Evidence) float64 {
		return func(e *sample.Evidence) (sum float64) {
			for _, p := range e.Parts {
				if p.Part == name {
					sum += of(p)
				}
			}
			return sum
		}
	}
	return passing{first: middle(part(sample.EvidenceRelay, endpoints.First)),
		last: middle(part(sample.EvidenceServer, func(p sample.EvidencePart) float64 {
			return p.Last - p.First
		})),
		token: middle(part(sample.EvidenceRelay, func(p sample.EvidencePart) float64 { return p.P50 })),
		gap:   middle(func(e *sample.Evidence) float64 { return e.ServerGap }),
		pieces: middle(func(e *sample.Evidence) float64 {
			return pieces(e.Response) / float64(e.Response.Tokens)
		})}
}

// pieces returns the number of reads in which the tokens of a response came.
func pieces(r *sample.EvidenceResponse) float64 {
	n := 1.0
	for i := 1; i < len(r.Read); i++ {
		if r.Read[i]-r.Read[i-1] > endpoints.TogetherGap {
			n++
		}
	}
	return n
}

const oneByOne = "one by one"

// words says when the first token comes, and how all of them do.
func (p passing) words() (first, all string) {
	const (
		end    = 0.9 // of the server's time
		single = 0.8 // of the tokens: a busy client reads a few together
	)
	switch {
	case p.first >= end*p.last:
		return "with the last one", "all together"
	case p.first < max(p.gap, usual):
		first = "at once"
	default:
		first = fmt.Sprintf("after %.1f s", p.first)
	}
	if all = oneByOne; p.pieces < single {
		all = "several together"
	}
	return first, all
}

// usual is the longest time, in s, for which a busy machine's gateway may have a token.
const usual = 0.05

func (g gateway) row(version, asks string, p passing) string {
	setting := g.setting
	if setting != "" {
		setting = "`" + strings.TrimSuffix(setting, ";") + "`"
	}
	first, all := p.words()
	return fmt.Sprintf("| %s %s | %s | %s | %s | %s |", g.name, version, setting, asks, first, all)
}

// inMicro lists the medians of the parts of a token's time.
func inMicro(rounds []*sample.Evidence) string {
	var out []string
	for i, p := range rounds[0].Parts {
		var xs []float64
		for _, e := range rounds {
			xs = append(xs, e.Parts[i].P50)
		}
		slices.Sort(xs)
		out = append(out, fmt.Sprintf("%s %.0f", p.Part, 1e6*xs[len(xs)/2]))
	}
	return strings.Join(out, ", ")
}

const tableHead = "| gateway | setting | asks by HTTP | first token | tokens come |\n" +
	"|---|---|---|---|---|\n"

// TestGateways shows what gateways do to a real model's tokens.
func TestGateways(t *testing.T) {
	s := unpack(t)
	if os.Getuid() != 0 {
		t.Skip("only root sees when tokens left the server")
	}
	runtime.LockOSThread() // see command
	server := s.start(t)
	rows := map[string]string{}
	var order []string
	for _, g := range gateways() {
		name := strings.TrimSpace(g.name + " " + g.build + " " + g.setting)
		order = append(order, name)
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			asks := g.asks(t)
			addr, version := g.start(t, server)
			seen := s.measure(t, addr)
			p := passed(seen)
			if _, all := p.words(); (all != oneByOne) != g.holds {
				t.Errorf("the tokens come %s", all)
			}
			rows[name] = g.row(version, asks, p)
			t.Logf("%s\nµs of a token (median): %s; it holds the first one %.1f ms", rows[name],
				inMicro(seen), 1e3*p.first)
		})
	}
	table := tableHead
	for _, name := range order {
		if rows[name] != "" {
			table += rows[name] + "\n"
		}
	}
	t.Log("\n" + table)
	// A page keeps its rows if this machine lacks a gateway.
	if page := os.Getenv(pageEnv); page != "" && !t.Failed() && len(rows) == len(order) {
		if err := rewrite(page, table); err != nil {
			t.Error(err)
		}
	}
}

// rewrite replaces the table of a page.
func rewrite(page, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(string(text), tableHead)
	if !found {
		return fmt.Errorf("%s has no table of gateways", page)
	}
	for strings.HasPrefix(after, "|") {
		_, after, _ = strings.Cut(after, "\n")
	}
	return os.WriteFile(page, []byte(before+table+after), 0o644)
}
