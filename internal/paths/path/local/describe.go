package local

import (
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// Described is a namespace with the devices to describe.
type Described struct {
	Space
	Where   string
	Devices []string // nil: all
}

var noted = []string{"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
	"net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables"}

// Describe adds a description of the devices and of the machine's sysctls to the path, for the
// results.
func Describe(p *path.Path, machine Space, spots []Described) error {
	for _, at := range spots {
		links, err := Links(at, at.Where, at.Devices...)
		if err != nil {
			return err
		}
		p.Links = append(p.Links, links...)
	}
	return machine.Do(func() error {
		for _, key := range noted {
			if v, err := sysctl.Get(key); err == nil {
				p.Sysctls[key] = v
			}
		}
		return nil
	})
}
