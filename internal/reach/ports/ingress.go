package ports

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

// Ingress is a swarm's ingress network. Through it each node accepts connections to the published
// ports of services, wherever their tasks run.
type Ingress struct {
	// Addr is the address to which rules or a proxy forward these ports, in the namespace where
	// IPVS distributes connections; invalid: this machine has none.
	Addr     netip.Addr `json:"address,omitzero"`
	Services []Service  `json:"services,omitempty"` // empty on a worker, which cannot list them
	NoIPVS   bool       `json:"no_ipvs,omitempty"`
}

// Service is a port of a service that the ingress publishes.
type Service struct {
	Name   string `json:"name"`
	Proto  string `json:"protocol"`
	Port   uint16 `json:"port"`   // on the nodes
	Target uint16 `json:"target"` // in the tasks
}

func (in Ingress) service(proto string, port uint16) (Service, bool) {
	i := slices.IndexFunc(in.Services, func(s Service) bool {
		return s.Proto == proto && s.Port == port
	})
	if i < 0 {
		return Service{}, false
	}
	return in.Services[i], true
}

// server returns the service that publishes the port. The ingress network keeps the port's number.
func (in Ingress) server(proto string, port uint16) Server {
	s, _ := in.service(proto, port)
	return Server{Kind: "service", Name: cmp.Or(s.Name, "a swarm's service"),
		Port: cmp.Or(s.Target, port)}
}

func (f *Facts) ingressPort(proto string, port uint16) bool {
	if _, ok := f.Ingress.service(proto, port); ok {
		return true
	}
	return f.Ingress.Addr.IsValid() && f.Copy != nil && slices.ContainsFunc(f.Copy.asked,
		func(q asked) bool {
			return q.proto == proto && q.at.Port() == port && slices.ContainsFunc(q.answer.Steps,
				func(s replica.Step) bool { return s.Dst.Addr() == f.Ingress.Addr })
		})
}

func (f *Facts) unserved(rows []Row) []Trap {
	var out []Trap
	for _, s := range f.Ingress.Services {
		if slices.ContainsFunc(rows, func(r Row) bool {
			return r.Port == s.Port && r.Proto == s.Proto
		}) {
			continue
		}
		t := Trap{Code: IngressNothing, Ports: []string{fmt.Sprintf("%d/%s", s.Port, s.Proto)},
			About:    Reason{Code: IngressNothing, Of: s.Name, At: fmt.Sprintf("%d/%s", s.Port, s.Proto)},
			Evidence: "no socket listens on it, and no rule redirects it",
			Remedy: fmt.Sprintf(
				"look for ingress in dockerd's log, or publish only on the tasks' nodes: "+
					"--publish mode=host,target=%d,published=%d", s.Target, s.Port)}
		if f.Ingress.NoIPVS {
			t.Evidence += "; the kernel has no IPVS (CONFIG_IP_VS), which ingress needs"
			t.Remedy = fmt.Sprintf(
				"run %s and restart docker, or publish only on the tasks' nodes: "+
					"--publish mode=host,target=%d,published=%d",
				untriable("sudo modprobe ip_vs", withoutDaemons), s.Target, s.Port)
		}
		out = append(out, t)
	}
	return out
}
