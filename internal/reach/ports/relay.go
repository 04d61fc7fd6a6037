package ports

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// The relays are programs that listen for servers in the networks of engines without root.
const (
	Rootlesskit  = "rootlesskit"
	Pasta        = "pasta"
	Passt        = "passt"
	Slirp4netns  = "slirp4netns"
	Rootlessport = "rootlessport"
	Gvproxy      = "gvproxy"
)

var relays = []string{Rootlesskit, Pasta, Passt, Slirp4netns, Rootlessport, Gvproxy}

// IsRelay reports whether a program's name is a relay's.
func IsRelay(name string) bool { return slices.Contains(relays, name) }

// RelayName returns a process's name, given its command name and its arguments. passt and pasta are
// one file, whose variants for CPUs have other names, so the first argument decides.
func RelayName(comm string, args []string) string {
	name, _, _ := strings.Cut(comm, ".")
	if name != Pasta && name != Passt || len(args) == 0 {
		return comm
	}
	if called, _, _ := strings.Cut(path.Base(args[0]), "."); called == Pasta || called == Passt {
		return called
	}
	return name
}

// Source is the set of clients whose addresses a server behind a relay sees.
type Source string

// The sources; "": not known.
const (
	SourceHidden   Source = "hidden"   // no client's
	SourceMachines Source = "machines" // all but this machine's
	SourceOthers   Source = "others"   // all but loopback clients'
	SourceIPv4     Source = "ipv4"     // like SourceOthers, but only over IPv4
)

// name returns the program's name.
func (p Proxy) name() string {
	switch {
	case p.Program != "":
		return p.Program
	case p.Rootless:
		return Rootlesskit
	}
	return "docker-proxy"
}

// keepsFamily reports whether a relay connects to the container over the client's address family.
// The others connect over IPv4.
func (p Proxy) keepsFamily() bool { return p.Program == Pasta || p.Program == Passt }

// ends reports whether a relay ends in the container's own network.
func (p Proxy) ends() bool {
	return p.Rootless && (!p.Container.IsValid() || p.Container.Addr().IsUnspecified())
}

// hides reports whether it is certain that the server behind the proxy does not see the client's
// address.
func (p Proxy) hides(kind Client, dialled netip.Addr) bool {
	loop := dialled.IsLoopback()
	switch {
	case !p.Rootless || p.Next != nil || p.Program == "":
		return true
	case p.Source == SourceMachines:
		return loop || kind == OwnAddr
	case p.Source == SourceOthers:
		return loop
	case p.Source == SourceIPv4:
		return loop || dialled.Is6()
	}
	return p.Source == SourceHidden
}

// dials returns the words for what the proxy does with a connection.
func (f *Facts) dials(p Proxy) string {
	switch {
	case !p.Rootless:
		return "dials " + p.Container.String()
	case p.Next != nil:
		return fmt.Sprintf("dials port %d in the engine's network", p.Next.Host.Port())
	case !p.ends():
		return "relays it to " + p.Container.String() + " in the engine's network"
	}
	into := "another network"
	if c, ok := f.behind(p); ok {
		into = "the network of " + c.Name
	}
	if port := p.Container.Port(); port != 0 {
		return fmt.Sprintf("relays it to port %d in %s", port, into)
	}
	return "relays it into " + into
}

// unknownBehind returns the server of a relay behind which nothing else was found.
func (p Proxy) unknownBehind() Server {
	s := Server{Kind: "unknown", Name: "? behind " + p.name()}
	switch {
	case !p.ends():
		s.Name = p.Container.String() + ", rootless"
	case p.Container.Port() != 0:
		s.Name = fmt.Sprintf("?:%d behind %s", p.Container.Port(), p.name())
	}
	return s
}
