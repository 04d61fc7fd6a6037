// Package collect reads from the running machine what internal/ports judges:
// sockets and their processes, rules, devices and settings of this network
// namespace, and Docker's containers. It changes nothing. It lists in
// Facts.Missing what it may not read, and goes on.
package collect

import (
	"context"
	"os"

	"github.com/bridgetoll/bridgetoll/internal/ports"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Facts reads the machine. Only what is needed at all can fail: the sockets.
func Facts(ctx context.Context) (*ports.Facts, error) {
	c := &collector{f: &ports.Facts{}, root: os.Geteuid() == 0}
	c.processes()
	used := c.proxyCPU()
	if err := c.sockets(); err != nil {
		return nil, err
	}
	c.network()
	c.docker(ctx)
	c.spaces()
	used()
	for _, p := range []any{&c.f.Listeners, &c.f.Containers, &c.f.Devices, &c.f.Docker, &c.f.Ingress, &c.f.Missing} {
		printable.Fields(p) // the door for names of processes, devices and containers
	}
	return c.f, nil
}

// Published reads only what decides about ports that running containers publish: no
// namespaces of theirs, no CPU clocks, no logs.
func Published(ctx context.Context) (*ports.Facts, error) {
	c := &collector{f: &ports.Facts{}, root: os.Geteuid() == 0, brief: true}
	c.processes()
	if err := c.sockets(); err != nil {
		return nil, err
	}
	c.network()
	c.docker(ctx)
	for _, p := range []any{&c.f.Listeners, &c.f.Containers, &c.f.Devices, &c.f.Docker, &c.f.Missing} {
		printable.Fields(p)
	}
	return c.f, nil
}

type collector struct {
	f      *ports.Facts
	root   bool
	brief  bool                       // only what Published reads
	owners map[uint32][]ports.Process // by inode of their sockets
	procs  []process
	space  map[int]string // by PID: its network namespace
	hidden bool           // some processes' files cannot be read
}

// missing notes what could not be read.
func (c *collector) missing(what, why, remedy string) {
	c.f.Missing = append(c.f.Missing, ports.Missing{What: what, Why: why, Remedy: remedy})
}

const asRoot = "run toll ports as root"
