package vantage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
)

// bytes
const maxFile = 1 << 20

// StartFirst is the hint where connections to a server are refused.
const StartFirst = "start the server first, or publish the container's port; toll ports PORT shows who listens"

// CheckAddress is the hint for a server that no packet reaches from here.
const CheckAddress = "check the address, and whether its machine runs; a container's address is reachable from its own machine only"

// DialHint returns the hint for a connection that failed, or "".
func DialHint(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return StartFirst
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return CheckAddress
	}
	return ""
}

// CheckName is the hint for a host that cannot be looked up.
const CheckName = "check the name, or give an address; containers' names are known on their networks only"

type names struct {
	hosts   map[string][]netip.Addr
	servers []string
	search  []string
}

// lookUp resolves a host as a program in the place would: by its hosts file, then by its name
// servers.
func (v *Vantage) lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	n := v.names()
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if a := n.hosts[name]; len(a) > 0 {
		return a, nil
	}
	if len(n.servers) == 0 {
		return nil, &Error{msg: fmt.Sprintf("%s has no name server that could resolve %s", v.name, host),
			hint: CheckName}
	}
	var failed error
	for _, full := range n.candidates(name) {
		var addrs []netip.Addr
		addrs, n.servers, failed = v.ask(ctx, n.servers, full)
		if failed == nil {
			return addrs, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	var e *net.DNSError
	if errors.As(failed, &e) { // its Server is this machine's
		failed = errors.New(e.Err)
	}
	return nil, &Error{msg: fmt.Sprintf("look up %s in %s", host, v.name), hint: CheckName,
		err: failed}
}

// patience is how long a name server is asked if there is another. Callers wait for ten seconds.
const patience = 2 * time.Second

// ask asks the place's name servers in turn until one knows the name, or knows that there is none.
// rest begins with the one that answered.
func (v *Vantage) ask(ctx context.Context, servers []string, name string) (addrs []netip.Addr,
	rest []string, err error) {
	for i, server := range servers {
		limit, cancel := ctx, context.CancelFunc(func() {})
		if i < len(servers)-1 {
			limit, cancel = context.WithTimeout(ctx, patience)
		}
		r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (
			c net.Conn, err error) {
			err = v.visit(func() error {
				var d net.Dialer
				c, err = d.DialContext(ctx, network, net.JoinHostPort(server, "53"))
				return err
			})
			return c, err
		}}
		addrs, err = r.LookupNetIP(limit, "ip", name)
		cancel()
		var e *net.DNSError
		if err == nil || errors.As(err, &e) && e.IsNotFound || ctx.Err() != nil {
			return addrs, servers[i:], err
		}
	}
	return addrs, servers, err
}

// candidates returns the full names to look up, by the place's search list. They end in a dot, so
// that this machine's search list does not apply.
func (n names) candidates(name string) []string {
	var out []string
	if strings.Contains(name, ".") {
		out = append(out, name+".")
	}
	for _, s := range n.search {
		out = append(out, name+"."+strings.TrimSuffix(s, ".")+".")
	}
	if !strings.Contains(name, ".") {
		out = append([]string{name + "."}, out...) // Docker's DNS server answers these
	}
	return out
}

func (v *Vantage) names() names {
	return parseNames(readFile(v.files, "etc/hosts"), readFile(v.files, "etc/resolv.conf"))
}

// readFile returns the content of a file below a root directory, or "" if it cannot be read.
func readFile(root, name string) string {
	f, err := exchange.OpenIn(root, name) // a container may have put anything there
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return string(b)
}

// parseNames parses a hosts file and a resolv.conf. It ignores malformed lines.
func parseNames(hosts, conf string) names {
	n := names{hosts: map[string][]netip.Addr{}}
	for line := range strings.Lines(hosts) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		a, err := netip.ParseAddr(f[0])
		if err != nil {
			continue
		}
		for _, name := range f[1:] {
			name = strings.ToLower(strings.TrimSuffix(name, "."))
			n.hosts[name] = append(n.hosts[name], a.Unmap())
		}
	}
	for line := range strings.Lines(conf) {
		switch f := strings.Fields(line); {
		case len(f) < 2:
		case f[0] == "nameserver":
			if _, err := netip.ParseAddr(f[1]); err == nil {
				n.servers = append(n.servers, f[1])
			}
		case f[0] == "search" || f[0] == "domain":
			n.search = f[1:]
		}
	}
	return n
}
