package collect

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/ports"
)

// relay is a process that listens for servers in another network namespace.
type relay struct {
	ports.Process
	space string // where these are; "": not known
	// forwards are its ports. If they are not all known, a port may have no forward.
	forwards []forward
	all      bool
	source   ports.Source
}

// forward is a port of a relay, and the port in the other namespace. A port 0 is any, led to the
// same number.
type forward struct {
	proto string
	host  netip.AddrPort
	to    uint16
}

func (r *relay) forward(l ports.Listener) (to uint16, ok bool) {
	for _, f := range r.forwards {
		a, b := f.host.Addr(), l.Addr.Addr()
		if f.proto != l.Proto || f.host.Port() != 0 && f.host.Port() != l.Addr.Port() ||
			a.IsValid() && a != b && (!a.IsUnspecified() || !b.IsUnspecified()) {
			continue
		}
		if f.to == 0 {
			return l.Addr.Port(), true
		}
		return f.to, true
	}
	return 0, false
}

// relays finds what is behind the relays' sockets: a docker-proxy in the other namespace, or that
// namespace itself. Published reads no forwards.
func (c *collector) relays(proxies []ports.Proxy) {
	known := map[int]*relay{}
	var outgoing []string
	c.f.Listeners = slices.DeleteFunc(c.f.Listeners, func(l ports.Listener) bool {
		if len(l.Owners) == 0 || !ports.IsRelay(l.Owners[0].Name) {
			return false
		}
		o := l.Owners[0]
		if known[o.PID] == nil {
			known[o.PID] = c.relay(o)
		}
		r := known[o.PID]
		to, ok := r.forward(l)
		if !ok && l.Proto == "udp" && r.sends() && !c.brief {
			if r.all {
				return true
			}
			if low := clientPorts(); low[0] <= l.Addr.Port() && l.Addr.Port() <= low[1] {
				outgoing = append(outgoing, fmt.Sprintf("%d (%s)", l.Addr.Port(), o.Name))
				return true
			}
		}
		p := ports.Proxy{PID: o.PID, Proto: l.Proto, Host: l.Addr, Program: o.Name, Rootless: true,
			Space: r.space, Container: netip.AddrPortFrom(netip.IPv4Unspecified(), to), Source: r.source}
		if next := c.next(p, proxies); next != nil {
			p.Next, p.Container, p.Space = &ports.Next{PID: next.PID, Host: next.Host},
				next.Container, next.Space
		}
		c.f.Proxies = append(c.f.Proxies, p)
		return false
	})
	if len(outgoing) > 0 {
		c.missing("UDP ports "+strings.Join(outgoing, ", "),
			"whether they are published, or carry what the relay's containers send out", "")
	}
}

// sends reports whether the relay has sockets for what its containers send, besides its ports.
func (r *relay) sends() bool {
	return slices.Contains([]string{ports.Slirp4netns, ports.Pasta, ports.Passt}, r.Name)
}

// next returns the docker-proxy that the relay reaches, in its own namespace or started by it.
// Others may have the same port elsewhere.
func (c *collector) next(r ports.Proxy, proxies []ports.Proxy) (best *ports.Proxy) {
	port := r.Container.Port()
	if port == 0 {
		port = r.Host.Port()
	}
	for _, p := range proxies {
		if p.Proto == r.Proto && p.Host.Port() == port && c.reaches(r, p) &&
			(best == nil || nearer(p, *best, r.Host)) {
			best = &p
		}
	}
	return best
}

func (c *collector) reaches(r, p ports.Proxy) bool {
	if r.Space != "" && p.Space != "" {
		return r.Space == p.Space
	}
	return slices.Contains(c.ancestors[p.PID], r.PID)
}

// Inside the namespaces, a wildcard is a loopback address of its family.
func nearer(a, b ports.Proxy, host netip.AddrPort) bool {
	rank := func(p ports.Proxy) int {
		switch {
		case p.Host == host:
			return 2
		case p.Host.Addr().Is4() == host.Addr().Is4():
			return 1
		}
		return 0
	}
	return rank(a) > rank(b)
}

func (c *collector) relay(o ports.Process) *relay {
	r := &relay{Process: o}
	switch o.Name {
	case ports.Pasta, ports.Passt:
		r.space = c.only(netns.Held(o.PID))
		r.source = ports.SourceMachines
		r.forwards, r.all = pastaForwards(arguments(o.PID))
	case ports.Slirp4netns:
		r.space = c.only(netns.Held(o.PID))
		r.source = ports.SourceOthers
		if !c.brief {
			r.askSlirp4netns(c.deadline())
		}
	case ports.Rootlessport:
		r.space = c.childSpace(o.PID, "")
		r.source = ports.SourceHidden
	case ports.Rootlesskit:
		api := listensAt(o.PID)
		r.space = c.childSpace(o.PID, stateDir(api))
		if !c.brief {
			r.askRootlesskit(c.deadline())
		}
	case ports.Gvproxy:
		r.source = ports.SourceHidden
	}
	return r
}

// only returns the namespace that is not the machine's, if there is one such.
func (c *collector) only(ids []string, err error) string {
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == c.f.Space })
	if err != nil || len(ids) != 1 {
		return ""
	}
	return ids[0]
}

// childSpace returns the namespace in which a process's children run, or with a detached network
// the one that is mounted in its directory of state.
func (c *collector) childSpace(pid int, state string) string {
	var ids []string
	for _, p := range c.procs {
		if p.parent != pid {
			continue
		}
		if p.space != "" {
			ids = append(ids, p.space)
		}
		if id := netns.MountedAt(p.PID, path.Join(state, "netns")); id != "" && state != "" {
			return id
		}
	}
	slices.Sort(ids)
	return c.only(slices.Compact(ids), nil)
}

func arguments(pid int) []string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return nil
	}
	args, _ := p.CmdLine()
	return args
}

// pastaForwards parses the options for ports, as passt(1) describes them. all is false if some
// cannot be known.
func pastaForwards(args []string) (out []forward, all bool) {
	all = true
	options := map[string]string{"-t": "tcp", "--tcp-ports": "tcp", "-u": "udp",
		"--udp-ports": "udp"}
	for i := 1; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		proto := options[name]
		switch {
		case proto != "" && !joined && i+1 < len(args):
			i++
			value = args[i]
		case proto == "" && len(args[i]) > 2 && options[args[i][:2]] != "" && args[i][1] != '-':
			proto, value = options[args[i][:2]], args[i][2:]
		}
		if proto == "" {
			continue
		}
		more, ok := pastaPorts(proto, value)
		out, all = append(out, more...), all && ok
	}
	return out, all
}

// maxForwards limits the ports of one range.
const maxForwards = 1 << 16

func pastaPorts(proto, value string) (out []forward, ok bool) {
	if value == "none" {
		return nil, true
	}
	var addr netip.Addr
	if at, rest, found := strings.Cut(value, "/"); found {
		at, _, _ = strings.Cut(at, "%")
		addr, _ = netip.ParseAddr(strings.Trim(at, "[]")) // invalid: a device, any address
		value = rest
	}
	for part := range strings.SplitSeq(value, ",") {
		from, to, mapped := strings.Cut(part, ":")
		if strings.HasPrefix(part, "~") { // all other ports
			return append(out, forward{proto: proto, host: netip.AddrPortFrom(addr, 0)}), false
		}
		low, high, ok := portRange(from)
		target := low
		if mapped {
			var ok2 bool
			if target, _, ok2 = portRange(to); !ok2 {
				return out, false
			}
		}
		if !ok { // auto, all
			return append(out, forward{proto: proto, host: netip.AddrPortFrom(addr, 0)}), false
		}
		for n := 0; n <= int(high-low) && n < maxForwards; n++ {
			out = append(out, forward{proto, netip.AddrPortFrom(addr, low+uint16(n)),
				target + uint16(n)})
		}
	}
	return out, true
}

func portRange(text string) (low, high uint16, ok bool) {
	first, last, ranged := strings.Cut(text, "-")
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := a, error(nil)
	if ranged {
		b, errB = strconv.ParseUint(last, 10, 16)
	}
	return uint16(a), uint16(b), errA == nil && errB == nil && a > 0 && a <= b
}

// askSlirp4netns asks by the API, without which there are no forwards.
func (r *relay) askSlirp4netns(until time.Time) {
	at := listensAt(r.PID)
	if len(at) == 0 {
		r.all = true
		return
	}
	var answer struct {
		Entries []struct {
			Proto string     `json:"proto"`
			Addr  netip.Addr `json:"host_addr"`
			Port  uint16     `json:"host_port"`
			Guest uint16     `json:"guest_port"`
		} `json:"entries"`
	}
	err := converse(r.PID, at[0], until, func(conn *net.UnixConn) error {
		if _, err := io.WriteString(conn, `{"execute":"list_hostfwd"}`); err != nil {
			return err
		}
		if err := conn.CloseWrite(); err != nil {
			return err
		}
		return json.NewDecoder(io.LimitReader(conn, relayAnswer)).Decode(&answer)
	})
	r.all = err == nil
	for _, e := range answer.Entries {
		r.forwards = append(r.forwards, forward{e.Proto, netip.AddrPortFrom(e.Addr, e.Port), e.Guest})
	}
}

func (r *relay) askRootlesskit(until time.Time) {
	var listed []struct {
		Spec struct {
			Proto  string     `json:"proto"`
			Parent netip.Addr `json:"parentIP"`
			Port   uint16     `json:"parentPort"`
			Child  uint16     `json:"childPort"`
		} `json:"spec"`
	}
	var info struct {
		Version string `json:"version"`
		Ports   struct {
			Driver string `json:"driver"`
		} `json:"portDriver"`
	}
	if r.get("/v1/ports", until, &listed) != nil || r.get("/v1/info", until, &info) != nil {
		return
	}
	r.all = true
	for _, x := range listed {
		proto := strings.TrimRight(x.Spec.Proto, "46")
		// Some versions listen on the wildcard of both families for that of one.
		if x.Spec.Parent.IsUnspecified() {
			x.Spec.Parent = netip.Addr{}
		}
		r.forwards = append(r.forwards, forward{proto, netip.AddrPortFrom(x.Spec.Parent, x.Spec.Port),
			x.Spec.Child})
	}
	r.source = ports.SourceHidden
	// The port driver of version 3 keeps the client's address.
	major, _, _ := strings.Cut(info.Version, ".")
	if n, err := strconv.Atoi(major); err != nil || n >= 3 && info.Ports.Driver == "builtin" {
		r.source = ports.SourceIPv4
		if slices.Contains(arguments(r.PID), "--source-ip-transparent=false") {
			r.source = ports.SourceHidden
		}
	}
}

func (r *relay) get(what string, until time.Time, answer any) error {
	err := errors.New("it has no API socket")
	for _, at := range listensAt(r.PID) {
		if path.Base(at) != apiSocket {
			continue
		}
		err = converse(r.PID, at, until, func(conn *net.UnixConn) error {
			request, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
				"http://rootlesskit"+what, http.NoBody)
			if err != nil {
				return err
			}
			request.Close = true
			if err := request.Write(conn); err != nil {
				return err
			}
			got, err := http.ReadResponse(bufio.NewReader(conn), request)
			if err != nil {
				return err
			}
			defer got.Body.Close()
			if got.StatusCode != http.StatusOK {
				return errors.New(got.Status)
			}
			return json.NewDecoder(io.LimitReader(got.Body, relayAnswer)).Decode(answer)
		})
	}
	return err
}

const (
	apiSocket    = "api.sock"  // of rootlesskit, in its directory of state
	relayTimeout = time.Second // of one relay
	relaysTime   = 3 * time.Second
	relayAnswer  = 1 << 20
)

// deadline returns until when the next relay may answer. Together they take no longer than a few
// seconds.
func (c *collector) deadline() time.Time {
	now := time.Now()
	if c.until.IsZero() {
		c.until = now.Add(relaysTime)
	}
	if one := now.Add(relayTimeout); one.Before(c.until) {
		return one
	}
	return c.until
}

func stateDir(sockets []string) string {
	for _, at := range sockets {
		if path.Base(at) == apiSocket {
			return path.Dir(at)
		}
	}
	return ""
}

// listensAt returns the files of the unix sockets on which a process listens, as it names them.
func listensAt(pid int) (files []string) {
	const accepts = 1 << 16 // SO_ACCEPTCON in net/unix/af_unix.c
	inodes, err := sock.Inodes(pid)
	if err != nil {
		return nil
	}
	fs, err := procfs.NewFS("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return nil
	}
	all, err := fs.NetUNIX()
	if err != nil {
		return nil
	}
	for _, row := range all.Rows {
		if inodes[uint32(row.Inode)] && row.Flags&accepts != 0 && path.IsAbs(row.Path) {
			files = append(files, row.Path)
		}
	}
	return files
}

// converse connects to a socket of the process, which may be in another mount namespace. It talks to
// no other process than that.
func converse(pid int, file string, until time.Time, talk func(*net.UnixConn) error) error {
	var all error
	for _, root := range []string{"/proc/" + strconv.Itoa(pid) + "/root", ""} {
		err := converseIn(root+file, pid, until, talk)
		if err == nil {
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}

func converseIn(file string, pid int, until time.Time, talk func(*net.UnixConn) error) error {
	fd, err := unix.Open(file, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", file, err)
	}
	defer func() { _ = unix.Close(fd) }()
	// a path may be longer than an address
	d := net.Dialer{Deadline: until}
	conn, err := d.DialContext(context.Background(), "unix", "/proc/self/fd/"+strconv.Itoa(fd))
	if err != nil {
		return err
	}
	defer conn.Close()
	u := conn.(*net.UnixConn)
	if err := u.SetDeadline(until); err != nil {
		return err
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if errRaw := raw.Control(func(s uintptr) {
		peer, err = unix.GetsockoptUcred(int(s), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); errRaw != nil || err != nil {
		return errors.Join(errRaw, err)
	}
	if int(peer.Pid) != pid {
		return fmt.Errorf("process %d listens at %s, not %d", peer.Pid, file, pid)
	}
	return talk(u)
}

// published takes what is behind relays from the engine's answer.
func (c *collector) published() {
	for i := range c.f.Proxies {
		p := &c.f.Proxies[i]
		for _, x := range c.f.Containers {
			for _, at := range x.Published {
				if !p.Rootless || p.Next != nil || p.ID != "" || at.Proto != p.Proto ||
					!alike(at.Host, p.Host) {
					continue
				}
				switch {
				case x.Space != "" && x.Space == p.Space:
					p.ID, p.Container = x.ID, netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port)
				case x.Rootless && len(x.Addrs) > 0 && c.mayReach(*p, x):
					p.ID, p.Container = x.ID, netip.AddrPortFrom(x.Addrs[0], at.Port)
				}
			}
		}
	}
}

// mayReach reports whether nothing known speaks against that a relay leads to the container of a
// rootless engine: its network is linked to the relay's.
func (c *collector) mayReach(p ports.Proxy, x ports.Container) bool {
	known := slices.ContainsFunc(x.Devices, func(d ports.Device) bool { return d.PeerSpace != "" })
	return p.Space == "" || !known && p.Program == ports.Rootlesskit ||
		slices.ContainsFunc(x.Devices, func(d ports.Device) bool {
			return d.PeerSpace == p.Space
		})
}

// alike compares where a port is published and where a relay listens, which may take both families.
func alike(a, b netip.AddrPort) bool {
	return a == b || a.Port() == b.Port() && a.Addr().IsUnspecified() && b.Addr().IsUnspecified()
}

// relaySpaces returns the namespaces in which relays' servers are.
func (c *collector) relaySpaces() map[string]bool {
	out := map[string]bool{}
	for _, p := range c.f.Proxies {
		if p.Rootless && p.Space != "" {
			out[p.Space] = true
		}
	}
	return out
}

// ends reports whether a relay's server is in the namespace itself. A rootlesskit's may be an
// engine's network, where the engine itself holds the port for containers.
func (c *collector) ends(x ports.Container) bool {
	return slices.ContainsFunc(c.f.Proxies, func(p ports.Proxy) bool {
		return p.Rootless && p.Space == x.Space && p.Space != "" && p.Next == nil &&
			(p.Program != ports.Rootlesskit ||
				slices.ContainsFunc(x.Listeners, func(l ports.Listener) bool {
					return l.Proto == p.Proto && l.Addr.Port() == p.Container.Port() &&
						!slices.ContainsFunc(l.Owners, func(o ports.Process) bool {
							return o.Name == "dockerd" || o.Name == "docker-proxy"
						})
				}))
	})
}
