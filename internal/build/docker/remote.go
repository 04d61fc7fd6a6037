package docker

import (
	"net/netip"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/build/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// Remote is another machine that all clients are on, outside every container. They dial
// this one.
type Remote struct {
	Place   path.Place
	Machine path.Machine
	Addr    netip.Addr // of this machine, which they dial
	Wire    path.Hop   // between the two
}

// remotely are the modes that such clients reach.
var remotely = map[mode.Name]bool{mode.Host: true, mode.PublishNAT: true}

// Remotely are their names.
func Remotely() []string { return recipe.Names(remotely) }

// refuse refuses what is not for clients there.
func (r *Remote) refuse(s path.Spec) error {
	switch {
	case s.From != mode.FromRemote:
		return &path.UnsupportedError{Missing: "the clients are on the other machine, outside every container", Remedy: "--from remote"}
	case !remotely[s.Mode]:
		return &path.UnsupportedError{Missing: "from another machine toll does not reach " + string(s.Mode) + " of a Docker Engine", Remedy: "--on lab, or swarm"}
	case !r.Addr.Is4() || s.To.Six():
		return &path.UnsupportedError{Missing: "the servers' containers have IPv4, and the peer is to dial " + r.Addr.String(),
			Remedy: "--peer-dial with an IPv4 address of this machine"}
	}
	return nil
}

// placeRemote places all clients there.
func (s *site) placeRemote(r *Remote) {
	s.PlaceClients(r.Place)
	for i := range s.path.Clients {
		s.path.Clients[i].Machine = r.Machine
	}
}
