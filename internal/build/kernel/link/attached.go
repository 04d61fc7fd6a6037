package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// Attached lists, by device, what may drop or change the packets of the devices of the
// calling thread's network namespace: BPF programs, tc filters, and queues. Devices that
// have none are left out. It needs CAP_NET_ADMIN to see BPF programs.
func Attached() (map[string][]string, error) {
	links, err := dump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	control, err := traffic()
	if err != nil {
		return nil, err
	}
	in := inspector{links: links, control: control}
	out := map[string][]string{}
	for _, l := range links {
		name := l.Attrs().Name
		found, err := in.diverting(l)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if s.Diverts {
				out[name] = append(out[name], s.What+": "+s.Value)
			}
		}
		for _, d := range control[l.Attrs().Index] {
			if d.kind != "noqueue" && !d.hook() {
				out[name] = append(out[name], "queueing discipline: "+d.String())
			}
		}
	}
	return out, nil
}
