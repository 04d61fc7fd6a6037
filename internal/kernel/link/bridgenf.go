package link

import (
	"fmt"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// BridgeNF names the options of a bridge that let iptables and ip6tables see what it forwards. The
// sysctls net.bridge.bridge-nf-call-iptables and -ip6tables do so for all bridges.
var BridgeNF = [...]string{"nf_call_iptables", "nf_call_ip6tables"}

var bridgeNF = [len(BridgeNF)]uint16{nl.IFLA_BR_NF_CALL_IPTABLES, nl.IFLA_BR_NF_CALL_IP6TABLES}

// BridgesNF returns these options of the namespace's bridges, by name.
func BridgesNF() (map[string][len(BridgeNF)]bool, error) {
	links, err := ReadLinks()
	if err != nil {
		return nil, err
	}
	out := map[string][len(BridgeNF)]bool{}
	for _, l := range links {
		if l.Kind != "bridge" {
			continue
		}
		f, err := fieldsOf(l.Data, 0)
		if err != nil {
			return nil, fmt.Errorf("read the options of %s: %w", l.Name, err)
		}
		var set [len(BridgeNF)]bool
		for i, kind := range bridgeNF {
			set[i] = len(f[kind]) == 1 && f[kind][0] != 0
		}
		out[l.Name] = set
	}
	return out, nil
}

// SetBridgeNF sets an option, by its index in BridgeNF. It returns ErrGone if the bridge does not
// exist.
func SetBridgeNF(name string, option int, on bool) error {
	value := byte(0)
	if on {
		value = 1
	}
	data := append(linkHeader(0, 0, 0), marshal(
		netlink.Attribute{Type: unix.IFLA_IFNAME, Data: nl.ZeroTerminated(name)},
		ofBridge(netlink.Attribute{Type: bridgeNF[option], Data: []byte{value}}))...)
	if err := sendOne(unix.RTM_NEWLINK, 0, data); err != nil {
		return fmt.Errorf("set %s of %s: %w", BridgeNF[option], name, err)
	}
	return nil
}
