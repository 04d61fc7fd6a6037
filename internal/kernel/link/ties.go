package link

import "net"

// Tie is how a device hangs together with others.
type Tie struct {
	Name string
	Kind string // the kernel's, or "loopback"
	// Master is the index of the bridge, bond or VRF whose port the device is; 0: there is none.
	Master int
	// Under is the index of a veth's or netkit's other end, or of the device below, as a VLAN's or
	// macvlan's. It may be in another namespace. 0: there is none.
	Under int
}

// Ties returns the namespace's devices by their indexes.
func Ties() (map[int]Tie, error) {
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	out := map[int]Tie{}
	for _, l := range links {
		a := l.Attrs()
		t := Tie{Name: a.Name, Kind: l.Type(), Master: a.MasterIndex, Under: a.ParentIndex}
		if a.Flags&net.FlagLoopback != 0 {
			t.Kind = "loopback"
		}
		out[a.Index] = t
	}
	return out, nil
}
