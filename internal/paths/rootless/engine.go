package rootless

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
)

// Engine describes a running rootless Docker Engine.
type Engine struct {
	// Daemon is the PID of dockerd. The user namespace of dockerd owns the engine's networks.
	Daemon int
	// NetNS is the file of the network namespace with the engine's bridges.
	NetNS string
	// Detached means that dockerd and containers with the host's network are in the machine's
	// network namespace, the default since Docker Engine 29.5.
	Detached bool
	// Kit is the PID of the RootlessKit process that listens on the published ports.
	Kit int
	// StateDir is RootlessKit's state directory.
	StateDir string

	// Version is RootlessKit's version, Net its network driver and Driver its port driver. Each is
	// "" if RootlessKit does not report it.
	Version, Net, Driver string
}

// FindEngine returns the rootless engine whose daemon listens on the given Unix socket. It returns
// a *machine.UnsupportedError if no ancestor of the daemon is RootlessKit, or if toll may not read
// the daemon's environment.
func FindEngine(socket string) (*Engine, error) {
	pid, err := listener(socket)
	if err != nil {
		return nil, fmt.Errorf("find the process behind %s: %w", socket, err)
	}
	e := &Engine{Daemon: pid}
	if e.Kit = kitAbove(pid); e.Kit == 0 {
		return nil, &machine.UnsupportedError{
			Missing: "no ancestor of the process that listens on " + socket + " is RootlessKit",
			Remedy:  "run toll where dockerd-rootless.sh runs, outside containers; or toll compare shared --from container --baseline shared"}
	}
	const most = 8 << 20 // bytes; Linux lets a program have 6 MiB
	environ, err := exchange.ReadFile(fmt.Sprintf("/proc/%d/environ", pid), most)
	if err != nil {
		return nil, &machine.UnsupportedError{
			Missing: "the rootless Docker daemon belongs to another user, and its namespaces cannot be entered",
			Remedy:  "run toll as its user, or as root", Err: err}
	}
	for v := range strings.SplitSeq(string(environ), "\x00") {
		if dir, ok := strings.CutPrefix(v, "ROOTLESSKIT_STATE_DIR="); ok {
			e.StateDir = dir
		}
	}
	e.NetNS = fmt.Sprintf("/proc/%d/ns/net", pid)
	detached := filepath.Join(fmt.Sprintf("/proc/%d/root", pid), e.StateDir, "netns")
	if _, err := os.Stat(detached); err == nil && e.StateDir != "" {
		e.NetNS, e.Detached = detached, true
	}
	e.describe()
	return e, nil
}

func listener(socket string) (pid int, err error) {
	const patience = 10 * time.Second
	c, err := net.DialTimeout("unix", socket, patience)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	peer, err := sock.Peer(c.(*net.UnixConn))
	if err != nil {
		return 0, err
	}
	if peer.Pid == 0 {
		return 0, errors.New("it is in another PID namespace")
	}
	return int(peer.Pid), nil
}

// kitAbove returns the PID of the outer RootlessKit process above pid, or 0. RootlessKit runs as
// two processes: the outer one is in the machine's namespaces and starts the inner one.
func kitAbove(pid int) (kit int) {
	for pid > 1 {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return kit
		}
		stat, err := p.Stat()
		if err != nil {
			return kit
		}
		if strings.Contains(stat.Comm, RootlessKit) || stat.Comm == "docker-rootless" { // comm has at most 15 bytes
			kit = pid
		} else if kit != 0 {
			return kit
		}
		pid = stat.PPID
	}
	return kit
}

// describe sets the fields that RootlessKit reports. It ignores errors, because no measurement
// depends on these fields.
func (e *Engine) describe() {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(e.StateDir, "api.sock"))
		}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://rootlesskit/v1/info", nil)
	if err != nil {
		return
	}
	answer, err := t.RoundTrip(r)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	var info struct {
		Version       string `json:"version"`
		NetworkDriver struct {
			Driver string `json:"driver"`
		} `json:"networkDriver"`
		PortDriver *struct {
			Driver string `json:"driver"`
		} `json:"portDriver"`
	}
	const most = 64 << 10
	if json.NewDecoder(http.MaxBytesReader(nil, answer.Body, most)).Decode(&info) != nil {
		return
	}
	e.Version, e.Net = info.Version, info.NetworkDriver.Driver
	switch {
	case info.PortDriver != nil:
		e.Driver = info.PortDriver.Driver
	case e.Net == Pasta:
		e.Driver = "implicit" // RootlessKit does not report this driver
	}
}

// Inside reports whether this process is in the user namespace of process pid.
func Inside(pid int) bool {
	own, err := os.Readlink("/proc/self/ns/user")
	its, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
	return err == nil && err2 == nil && own == its
}
