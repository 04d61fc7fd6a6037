package collect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

type process struct {
	ports.Process
	space  string // network namespace; "" if it may not be read
	parent int
}

func (c *collector) processes() {
	c.space, c.starters = map[int]string{}, map[int]ports.Container{}
	c.ancestors, c.uid = map[int][]int{}, map[int]uint32{}
	c.programs = map[string][]string{}
	all, err := procfs.AllProcs()
	if err != nil {
		c.missing("processes", err.Error(), "mount /proc")
		return
	}
	open := map[int]map[uint32]bool{} // sockets' inodes by PID
	var around string                 // the container that this process is in
	for _, proc := range all {
		pid := proc.PID
		args, err := proc.CmdLine()
		if err != nil {
			continue // ended meanwhile
		}
		comm, parent := status(proc)
		p := process{Process: ports.Process{PID: pid, Name: ports.RelayName(comm, args),
			Container: containerID(proc)}, parent: parent}
		if p.parent == os.Getpid() && len(args) > 1 && args[1] == replica.Arg {
			continue // of the copy that is to be made
		}
		if c.inside && pid == 1 {
			around = p.Container
		}
		p.space, _ = netns.ID(pid)
		if id, called, ok := starterArgs(args); ok {
			c.starters[pid] = ports.Container{ID: id, Name: called}
		}
		c.space[pid] = p.space
		c.procs = append(c.procs, p)
		if px, ok := proxyArgs(args); ok {
			px.PID, px.Command, px.Space = pid, args, p.space
			c.f.Proxies = append(c.f.Proxies, px)
		}
		if open[pid], err = sock.Inodes(pid); errors.Is(err, fs.ErrPermission) {
			c.hidden = append(c.hidden, p.Process)
		}
	}
	for i := range c.procs {
		if p := &c.procs[i]; p.Container == around {
			p.Container = ""
		}
	}
	// a container's first process first
	slices.SortFunc(c.procs, func(a, b process) int { return a.PID - b.PID })
	parents := c.parents()
	for _, p := range c.f.Proxies {
		c.ancestors[p.PID] = ancestors(p.PID, parents)
	}
	c.setContainers(parents)
	c.setOwners(open)
}

func (c *collector) parents() map[int]int {
	out := map[int]int{}
	for _, p := range c.procs {
		out[p.PID] = p.parent
	}
	return out
}

// setContainers sets the containers of processes without a control group of their own: those of
// their nearest ancestor that starts containers.
func (c *collector) setContainers(parents map[int]int) {
	c.contained = map[int]bool{}
	for i := range c.procs {
		p := &c.procs[i]
		for at, n := p.parent, 0; p.Container == "" && at != 0 && n < len(parents); n++ {
			p.Container, at = c.starters[at].ID, parents[at]
		}
		c.contained[p.PID] = p.Container != ""
	}
}

// containersProcesses gives each container its processes.
func (c *collector) containersProcesses() {
	of := map[string][]ports.Process{}
	for _, p := range c.procs {
		of[p.Container] = append(of[p.Container], ports.Process{PID: p.PID, Name: p.Name})
	}
	for i := range c.f.Containers {
		if x := &c.f.Containers[i]; x.ID != "" && x.PID != 0 {
			x.Processes = of[x.ID]
		}
	}
}

// setOwners sets the processes of sockets, given each process's inodes. A server comes before its
// workers.
func (c *collector) setOwners(open map[int]map[uint32]bool) {
	c.owners = map[uint32][]ports.Process{}
	for _, p := range c.procs {
		for i := range open[p.PID] {
			c.owners[i] = append(c.owners[i], p.Process)
		}
	}
}

// status returns the name and the parent of a process.
func status(p procfs.Proc) (name string, parent int) {
	stat, err := p.Stat()
	if err != nil {
		return "?", 0
	}
	return strings.TrimSpace(stat.Comm), stat.PPID
}

func user(p procfs.Proc) uint32 {
	status, err := p.NewStatus()
	if err != nil {
		return nobody
	}
	return uint32(status.UIDs[0])
}

const nobody = 1<<32 - 1 // no user's number

// userOf returns the user of a process, or nobody.
func (c *collector) userOf(pid int) uint32 {
	if _, known := c.uid[pid]; !known {
		c.uid[pid] = owner(pid)
	}
	return c.uid[pid]
}

func ancestors(pid int, parents map[int]int) (out []int) {
	for at := parents[pid]; at != 0 && !slices.Contains(out, at); at = parents[at] {
		out = append(out, at)
	}
	return out
}

var id64 = regexp.MustCompile(`[0-9a-f]{64}`)

// containerID returns the ID in the process's cgroup, or "". The cgroups are …/docker/ID,
// docker-ID.scope, libpod-ID.scope or cri-containerd-ID.scope.
func containerID(p procfs.Proc) string {
	all, _ := p.Cgroups()
	for _, g := range all {
		if m := id64.FindString(g.Path); m != "" {
			return m
		}
	}
	return ""
}

// starterArgs parses the arguments of the parent of a container's processes, Podman's conmon or a
// shim of containerd, which include the container's id, and conmon's also its name. It is not ok
// for the shims of Kubernetes, which start all containers of a pod.
func starterArgs(args []string) (id, name string, ok bool) {
	if len(args) == 0 {
		return "", "", false
	}
	program := path.Base(args[0])
	shim := strings.HasPrefix(program, "containerd-shim")
	if !shim && program != "conmon" {
		return "", "", false
	}
	for i := range len(args) - 1 {
		switch args[i] {
		case "-c", "--cid", "-id":
			id = args[i+1]
		case "-n", "--name":
			name = args[i+1]
		case "-namespace":
			if args[i+1] == "k8s.io" {
				return "", "", false
			}
		}
	}
	return id, name, id64.MatchString(id)
}

// proxyArgs parses the arguments of docker-proxy. Engines since 28 also pass a socket
// (-use-listen-fd).
func proxyArgs(args []string) (p ports.Proxy, ok bool) {
	if len(args) == 0 || !strings.HasSuffix(args[0], "docker-proxy") {
		return p, false
	}
	values := map[string]string{"proto": "tcp", "host-ip": "0.0.0.0"}
	for i := 1; i < len(args); i++ {
		key, value, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch {
		case !strings.HasPrefix(args[i], "-"):
		case joined:
			values[key] = value
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			values[key] = args[i+1]
			i++
		}
	}
	var okH, okC bool
	p.Proto = values["proto"]
	p.Host, okH = addrPort(values["host-ip"], values["host-port"])
	p.Container, okC = addrPort(values["container-ip"], values["container-port"])
	return p, okH && okC
}

func addrPort(ip, port string) (netip.AddrPort, bool) {
	a, errA := netip.ParseAddr(ip)
	n, errN := strconv.ParseUint(port, 10, 16)
	return netip.AddrPortFrom(a, uint16(n)), errA == nil && errN == nil && n > 0
}

func (c *collector) sockets() error {
	all, err := sock.Table()
	if err != nil { // the kernel lacks inet_diag
		var errProc error
		if all, errProc = sock.ListenersOf(c.pid); errProc != nil {
			return fmt.Errorf("%w; %w", err, errProc)
		}
		c.missing("connections", err.Error(), remedy.Modprobe("inet_diag", "tcp_diag", "udp_diag"))
	}
	c.f.Known.Owners = true
	c.f.Space, _ = netns.ID(c.pid)
	c.f.Listeners = c.listeners(all, c.f.Space)
	c.relays(slices.Clone(c.f.Proxies))
	for _, l := range c.f.Listeners {
		c.f.Known.Owners = c.f.Known.Owners && len(l.Owners) > 0
	}
	for _, s := range all {
		if s.Listening {
			continue
		}
		conn := ports.Connection{Local: s.Local, Remote: s.Remote, Bytes: s.Received + s.Sent}
		if owners := c.ownersOf(s.Inode, c.f.Space); len(owners) > 0 {
			conn.PID = owners[0].PID
		}
		c.f.Connections = append(c.f.Connections, conn)
	}
	switch {
	case c.f.Known.Owners:
	case len(c.hidden) > 0 && c.root:
		c.missing("owners of some sockets", "root may not read the open files of "+
			some(c.hidden)+" here, which "+has(c.hidden)+" capabilities that toll lacks",
			"run toll ports on the machine itself, with all capabilities")
	case len(c.hidden) > 0:
		c.missing("owners of some sockets", "the kernel shows other users' open files to root only",
			asRoot)
	default:
		c.missing(
			"owners of some sockets",
			"no visible process has them: they belong to the kernel or are outside this container",
			"run toll ports on the machine itself, outside the container")
	}
	users := map[uint32]uint32{}
	for _, s := range all {
		users[s.Inode] = s.UID
	}
	c.f.Proxies = slices.DeleteFunc(c.f.Proxies, func(p ports.Proxy) bool {
		elsewhere := c.elsewhere(p, users)
		if elsewhere {
			c.others = append(c.others, p)
		}
		return elsewhere
	})
	return nil
}

func some(all []ports.Process) string {
	text := fmt.Sprintf("%s (PID %d)", all[0].Name, all[0].PID)
	if n := len(all) - 1; n > 0 {
		text += " and " + units.Plural(n, "other process")
	}
	return text
}

func has(all []ports.Process) string {
	if len(all) == 1 {
		return "has"
	}
	return "have"
}

// usedPorts counts the connections of docker-proxies. Those to one container share local ports.
func (c *collector) usedPorts() {
	towards := map[netip.AddrPort]int{}
	for _, p := range c.f.Proxies {
		if p.Proto == "tcp" && !p.Rootless {
			towards[p.Container] = 0
		}
	}
	if len(towards) == 0 || sock.Towards(towards) != nil {
		return
	}
	for i := range c.f.Proxies {
		if p := &c.f.Proxies[i]; p.Proto == "tcp" && !p.Rootless {
			p.Used = towards[p.Container]
		}
	}
}

// ownersOf returns the processes of a socket in a namespace, those that probably serve it first.
// With socket activation, a container's process got the socket from a service manager, an engine or
// a monitor, which keep it too and never serve it.
func (c *collector) ownersOf(inode uint32, space string) []ports.Process {
	out := slices.Clone(c.owners[inode])
	rank := func(p ports.Process) int {
		return slices.Index([]bool{ports.IsRelay(p.Name) || p.Name == "docker-proxy",
			p.Space != "" || p.Container != "", !slices.Contains(ports.Keepers(), p.Name), true}, true)
	}
	for i := range out {
		if out[i].Space = c.space[out[i].PID]; out[i].Space == space {
			out[i].Space = ""
		}
	}
	slices.SortStableFunc(out, func(a, b ports.Process) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// elsewhere reports whether a proxy is in another network namespace, and so owns no socket here. If
// neither its namespace nor the socket's owner is known, a proxy is here only if it runs as the
// socket's user, in no container, and was not started by a relay.
func (c *collector) elsewhere(p ports.Proxy, users map[uint32]uint32) bool {
	if p.Space != "" && c.f.Space != "" && p.Space != c.f.Space && !p.Rootless {
		return true
	}
	return !slices.ContainsFunc(c.f.Listeners, func(l ports.Listener) bool {
		if l.Proto != p.Proto || l.Addr.Port() != p.Host.Port() {
			return false
		}
		if len(l.Owners) > 0 {
			return slices.ContainsFunc(l.Owners, func(o ports.Process) bool {
				return o.PID == p.PID
			})
		}
		return l.Addr == p.Host && users[l.Inode] == c.userOf(p.PID) && !c.contained[p.PID] &&
			!slices.ContainsFunc(c.procs, func(o process) bool {
				return ports.IsRelay(o.Name) && slices.Contains(c.ancestors[p.PID], o.PID)
			})
	})
}

// programsOf describes the programs of the processes' control groups. Only root may read them.
func (c *collector) programsOf(all []ports.Process) string {
	if !c.root || c.brief {
		return ""
	}
	var out []string
	for _, p := range all {
		dir, err := bpf.CgroupOf(p.PID)
		if err != nil {
			continue
		}
		known, ok := c.programs[dir]
		if !ok {
			for _, x := range replica.ProgramsOf(dir) {
				known = append(known, "BPF "+x+" of "+path.Base(dir))
			}
			c.programs[dir] = known
		}
		out = append(out, known...)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// listeners must run in the sockets' namespace.
func (c *collector) listeners(all []sock.Socket, space string) (out []ports.Listener) {
	for _, s := range all {
		if !s.Listening || s.Local.Port() == 0 {
			continue
		}
		l := ports.Listener{Proto: s.Proto, Addr: s.Local, V6Only: s.V6Only, Inode: s.Inode,
			Mark: s.Mark, Owners: c.ownersOf(s.Inode, space),
			Waiting: int(s.Waiting), Backlog: int(s.Backlog)}
		if s.Device != 0 {
			if d, err := net.InterfaceByIndex(int(s.Device)); err == nil {
				l.Device = d.Name
			}
		}
		l.Programs = c.programsOf(l.Owners)
		for _, o := range all {
			if l.Waiting > 0 && !o.Listening && o.Inode == 0 && o.Local.Port() == s.Local.Port() &&
				(s.Local.Addr().IsUnspecified() || o.Local.Addr().Unmap() == s.Local.Addr().Unmap()) {
				l.Waited = max(l.Waited, o.Quiet)
			}
		}
		out = append(out, l)
	}
	return out
}
