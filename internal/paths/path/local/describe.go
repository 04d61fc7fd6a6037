package local

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
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

// Cards adds the network cards that carry a device of a namespace to the path. where is the name of
// the place. crossed means that the path's packets cross the device.
func Cards(p *path.Path, ns Space, where, device string, crossed bool) error {
	var (
		all    []sample.Card
		across []string
	)
	err := ns.Do(func() (err error) {
		all, across, err = link.Cards(device)
		return err
	})
	if err != nil {
		return fmt.Errorf("describe %s: %w", where, err)
	}
	if !crossed {
		across = nil
	}
	p.AddCards(where, all, across)
	return nil
}

// Namespaces opens the namespaces of spots, each once, and lists all their devices. The caller
// closes them.
func Namespaces(spots []Described) (out []path.Namespace, err error) {
	seen := map[uint64]bool{}
	for _, at := range spots {
		err = at.Do(func() error {
			f, err := os.Open("/proc/thread-self/ns/net")
			if err != nil {
				return err
			}
			var st unix.Stat_t
			if err := unix.Fstat(int(f.Fd()), &st); err != nil || seen[st.Ino] {
				return errors.Join(err, f.Close())
			}
			seen[st.Ino] = true
			out = append(out, path.Namespace{File: f})
			all, err := link.Survey()
			for _, d := range all {
				n := &out[len(out)-1]
				n.Links = append(n.Links, sample.Link{Name: d.Name, Kind: d.Kind, Where: at.Where,
					MTU: d.MTU, NetNS: uint32(st.Ino), Index: uint32(d.Index)})
			}
			return err
		})
		if err != nil {
			for _, n := range out {
				n.Close()
			}
			return nil, fmt.Errorf("list the devices of %s: %w", at.Where, err)
		}
	}
	return out, nil
}
