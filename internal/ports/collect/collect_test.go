package collect

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/ports"
)

func TestProxyArgs(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/bin/docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 8080 -container-ip 172.17.0.2 -container-port 80":                         "tcp 0.0.0.0:8080 172.17.0.2:80",
		"/usr/bin/docker-proxy -proto udp -host-ip :: -host-port 53 -container-ip 172.17.0.2 -container-port 53 -use-listen-fd":                 "udp [::]:53 172.17.0.2:53",
		"docker-proxy -use-listen-fd -proto=tcp --host-ip=127.0.0.1 --host-port=1 --container-ip=fd00::2 --container-port=65535 -use-listen-fd": "tcp 127.0.0.1:1 [fd00::2]:65535",
		"/usr/bin/docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 8080 -container-ip 172.17.0.2":                                            "",
		"/usr/bin/docker-proxy --version": "",
		"vi docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 8080 -container-ip 172.17.0.2 -container-port 80": "",
		"docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 70000 -container-ip 172.17.0.2 -container-port 80":   "",
	} {
		got := ""
		if p, ok := proxyArgs(strings.Fields(line)); ok {
			got = p.Proto + " " + p.Host.String() + " " + p.Container.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func FuzzProxyArgs(f *testing.F) {
	f.Add("docker-proxy\x00-proto\x00tcp\x00-host-ip\x00::\x00-host-port\x0080\x00-container-ip\x00172.17.0.2\x00-container-port\x0080")
	f.Add("docker-proxy\x00-host-ip=\x00--\x00-")
	f.Fuzz(func(t *testing.T, line string) {
		p, ok := proxyArgs(strings.Split(line, "\x00"))
		if ok && (!p.Host.IsValid() || !p.Container.IsValid() || p.Host.Port() == 0 || p.Container.Port() == 0) {
			t.Errorf("%+v", p)
		}
	})
}

func TestContainerID(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for text, want := range map[string]string{
		"0::/system.slice/docker-" + id + ".scope\n":       id,
		"12:cpu:/\n3:memory:/docker/" + id + "\n":          id,
		"0::/kubepods.slice/x/cri-containerd-" + id + "\n": id,
		"0::/user.slice/user-1000.slice\n":                 "",
		"":                                                 "",
	} {
		if got := containerID(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// The engine is found as the docker command finds it.
func TestDockerHost(t *testing.T) {
	dir := t.TempDir()
	sum := sha256.Sum256([]byte("mine"))
	meta := filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]))
	if err := os.MkdirAll(meta, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(meta, "meta.json"), `{"Name":"mine","Endpoints":{"docker":{"Host":"unix:///run/user/1000/docker.sock"}}}`)
	t.Setenv("DOCKER_CONFIG", dir)
	for _, c := range []struct{ config, host, context, want, err string }{
		{"", "", "", defaultHost, ""},
		{`{"auths":{}}`, "", "", defaultHost, ""},
		{`{"currentContext":"mine"}`, "", "", "unix:///run/user/1000/docker.sock", ""},
		{`{"currentContext":"mine"}`, "unix:///x", "", "unix:///x", ""},
		{`{"currentContext":"mine"}`, "", "default", defaultHost, ""},
		{"", "", "mine", "unix:///run/user/1000/docker.sock", ""},
		{"", "", "gone", "", "context gone"},
		{"", "tcp://192.0.2.1:2376", "", "", "not on this machine"},
		{"{", "", "", "", "config.json"},
	} {
		os.Remove(filepath.Join(dir, "config.json"))
		if c.config != "" {
			write(filepath.Join(dir, "config.json"), c.config)
		}
		t.Setenv("DOCKER_HOST", c.host)
		t.Setenv("DOCKER_CONTEXT", c.context)
		got, err := dockerHost()
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// Our own listener is found, without Docker and whoever we are, and checked.
func TestFacts(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nowhere")
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f, err := Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(ln.Addr().String())
	i := slices.IndexFunc(f.Listeners, func(l ports.Listener) bool { return l.Addr == at })
	if i < 0 {
		t.Fatalf("%s is not in %+v", at, f.Listeners)
	}
	if o := f.Listeners[i].Owners; len(o) != 1 || o[0].PID != os.Getpid() {
		t.Errorf("%+v", o)
	}
	r := ports.Judge(f, at.Port())
	Check(t.Context(), r)
	got := map[ports.Client]string{}
	for _, k := range r.Checks {
		got[k.Client] = k.Got
		if !k.Agrees {
			t.Errorf("%+v", k)
		}
	}
	if got[ports.Loopback] != "connected" {
		t.Errorf("%+v", r)
	}
}
