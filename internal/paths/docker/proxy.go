package docker

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// errNoProxy means that the daemon starts no docker-proxy ("userland-proxy": false).
var errNoProxy = errors.New("no docker-proxy listens on the published port")

// findProxy returns the PID of the port's docker-proxy. It looks for the arguments that dockerd
// passes to docker-proxy.
func (e *engine) findProxy(proto string, host, to netip.AddrPort) (int, error) {
	here, err := e.netns()
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	want := []string{"-proto", proto, "-host-port", strconv.Itoa(int(host.Port())),
		"-container-ip", to.Addr().String(), "-container-port", strconv.Itoa(int(to.Port()))}
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		args := strings.Split(string(line), "\x00")
		if filepath.Base(args[0]) != "docker-proxy" || !hasPairs(args, want) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if at, nsErr := netns.ID(pid); err == nil && nsErr == nil && at == here {
			return pid, nil // only this engine's
		}
	}
	return 0, errNoProxy
}

func hasPairs(args, want []string) bool {
	for i := 0; i < len(want); i += 2 {
		at := slices.Index(args, want[i])
		if at < 0 || at+1 >= len(args) || args[at+1] != want[i+1] {
			return false
		}
	}
	return true
}

func (s *site) proto() string {
	if s.path.Spec.UDP {
		return "udp"
	}
	return "tcp"
}

func (s *site) proxyHop(host, to netip.AddrPort) (path.Hop, error) {
	pid, err := s.engine.findProxy(s.proto(), host, to)
	if err != nil {
		return path.Hop{}, err
	}
	name := "docker-proxy" + local.ProxyVersion("/proc/"+strconv.Itoa(pid)+"/exe")
	proxy := local.Proxy{Space: s.engine.ns, PID: pid, Listens: host.Port(), Target: to,
		Beside: s.engine.kit != nil} // RootlessKit dials the proxy
	return local.ProxyHop(s.path, proxy, name, s.engine.name), nil
}
