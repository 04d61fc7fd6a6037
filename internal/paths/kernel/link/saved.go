package link

import (
	"net"
)

// Saved is a network device as ReadLinks reads it and MakeLink makes it in another namespace.
type Saved struct {
	Name  string           `json:"name"`
	Index int              `json:"index"`
	Kind  string           `json:"kind"` // as rtnetlink names it; "": hardware
	MAC   net.HardwareAddr `json:"mac,omitempty"`
	MTU   int              `json:"mtu"`
	Group uint32           `json:"group,omitempty"`
	Up    bool             `json:"up"`
	NoARP bool             `json:"noarp,omitempty"`
	// Lower reports whether the device has a carrier, or needs none.
	Lower  bool `json:"running"`
	Master int  `json:"master,omitempty"` // index
	// Parent is the index of a veth's other end, or of the device below a VLAN or macvlan.
	Parent int `json:"parent,omitempty"`
	// ParentSpace is that device's namespace, as an id of this namespace; -1: this one.
	ParentSpace int `json:"parent_namespace"`
	// Data are IFLA_INFO_DATA and IFLA_INFO_SLAVE_DATA, of which MakeLink uses what it knows.
	Data  []byte `json:"data,omitempty"`
	Slave []byte `json:"slave_data,omitempty"`
}
