package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"os/exec"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/mode"
	"github.com/bridgetoll/bridgetoll/internal/path"
	"github.com/bridgetoll/bridgetoll/internal/path/local"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// errNoProxy says that no docker-proxy has a published port: the daemon's
// userland-proxy is off.
var errNoProxy = errors.New("no docker-proxy has the published port")

// findProxy finds the docker-proxy that relays a port of the machine to a
// container, by the arguments that dockerd gave it.
func findProxy(proto string, host, to netip.AddrPort) (int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	want := []string{"-proto", proto, "-host-port", strconv.Itoa(int(host.Port())),
		"-container-ip", to.Addr().String(), "-container-port", strconv.Itoa(int(to.Port()))}
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err != nil {
			continue // it ended
		}
		args := strings.Split(string(line), "\x00")
		if filepath.Base(args[0]) != "docker-proxy" || !hasPairs(args, want) {
			continue
		}
		return strconv.Atoi(filepath.Base(filepath.Dir(f)))
	}
	return 0, errNoProxy
}

// hasPairs reports whether args has each flag with its value.
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

// proxyHop is the docker-proxy of a published port: its sockets or, of UDP, what
// it read and wrote.
func (s *site) proxyHop(host, to netip.AddrPort) (path.Hop, error) {
	pid, err := findProxy(s.proto(), host, to)
	if err != nil {
		return path.Hop{}, err
	}
	name := "docker-proxy" + proxyVersion(pid)
	s.path.Proxies = append(s.path.Proxies, path.Proxy{Name: name, PID: pid})
	s.path.Facts["proxy"] = name
	h := path.Hop{Kind: mode.HopProxy, Name: name, Where: thisMachine + ", process " + strconv.Itoa(pid)}
	if s.path.Spec.UDP {
		h.Read = func() (sample.Counters, error) { return processIO(pid) }
		return h, nil
	}
	h.Expect, h.Read = path.Relays, local.Proxy{Space: s.engine.ns, PID: pid, Listens: host.Port(), Target: to,
		Beside: s.path.Spec.From == mode.FromHost}.Relayed()
	return h, nil
}

// processIO is what a process has written by write(2), as forward, and read by
// read(2). docker-proxy writes a client's datagrams to the server's socket so and
// reads the server's so, and talks to clients by sendmsg(2) and recvmsg(2), which
// are not counted there.
func processIO(pid int) (c sample.Counters, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return c, fmt.Errorf("read what process %d moved: %w", pid, err)
	}
	io, err := p.IO()
	if err != nil {
		return c, fmt.Errorf("read what process %d moved: %w", pid, err)
	}
	return sample.Counters{ForwardBytes: io.WChar, BackwardBytes: io.RChar}, nil
}

var versionWord = regexp.MustCompile(`version (\S+)`)

// proxyVersion is " 28.5.2" or "" (before 23.0 docker-proxy could not tell).
func proxyVersion(pid int) string {
	const limit = time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "/proc/"+strconv.Itoa(pid)+"/exe", "--version").Output()
	if m := versionWord.FindSubmatch(out); m != nil {
		return " " + string(m[1])
	}
	return ""
}
