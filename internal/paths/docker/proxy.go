package docker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
)

// errNoProxy means that the daemon starts no docker-proxy ("userland-proxy": false).
var errNoProxy = errors.New("no docker-proxy listens on the published port")

// findProxy returns the PID of the port's docker-proxy. It looks for the arguments that dockerd
// passes to docker-proxy.
func (e *engine) findProxy(proto string, p recipe.Port) (int, error) {
	here, err := e.netns()
	if err != nil {
		return 0, err
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	want := []string{"-proto", proto, "-host-port", strconv.Itoa(int(p.Dial.Port())),
		"-container-ip", p.Target.Addr().String(), "-container-port",
		strconv.Itoa(int(p.Target.Port()))}
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

func (s *site) proxyHop(p recipe.Port) (path.Hop, error) {
	pid, err := s.engine.findProxy(s.proto(), p)
	if err != nil {
		return path.Hop{}, err
	}
	name := "docker-proxy" + local.ProxyVersion("/proc/"+strconv.Itoa(pid)+"/exe")
	proxy := local.Proxy{Space: s.engine.ns, PID: pid, Listens: p.Dial.Port(), Target: p.Target,
		Beside: s.engine.kit != nil} // RootlessKit dials the proxy
	return local.ProxyHop(s.path, proxy, name, s.engine.name), nil
}
