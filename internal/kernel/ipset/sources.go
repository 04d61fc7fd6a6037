package ipset

import (
	"github.com/mdlayher/netlink"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
)

// Attributes of an element, of a set's settings (netmask), and of an address.
const (
	elementIP     = 1
	elementBits   = 3
	elementMAC    = 17
	elementIP2    = 20
	elementBits2  = 21
	elementDevice = 23

	dataNetmask = 20

	address4, address6 = 1, 2
)

// Sources adds the elements of the saved sets in out.Sets that rules compare with the source of
// packets.
func Sources(saved []raw.Message, out *xtables.Sources) {
	var all []set
	which, netmask := map[string]byte{}, map[string]int{}
	for _, m := range saved {
		s, err := parse(m)
		if err != nil {
			continue
		}
		all = append(all, s)
		if len(s.attrs[attrIndex].Data) > 0 { // the set's first message
			which[s.name] |= out.Sets[uint16(s.index)]
			for _, a := range within(s.attrs[attrData]) {
				if a.Type == dataNetmask && len(a.Data) == 1 {
					netmask[s.name] = int(a.Data[0])
				}
			}
		}
	}
	for _, s := range all {
		for _, member := range s.members() { // of a list
			which[member] |= which[s.name]
		}
	}
	for _, s := range all {
		if of := which[s.name]; of != 0 {
			s.sources(of, netmask[s.name], out)
		}
	}
}

// sources adds the elements in s. of tells which dimensions are compared with the source.
func (s set) sources(of byte, netmask int, out *xtables.Sources) {
	const first, others = 2, 4 | 8
	for _, e := range within(s.attrs[attrElements]) {
		var addresses [2][]byte
		bits := [2]int{netmask}
		for _, a := range within(e) {
			switch a.Type {
			case elementIP, elementIP2:
				for _, x := range within(a) {
					if x.Type == address4 || x.Type == address6 {
						addresses[a.Type/elementIP2] = x.Data
					}
				}
			case elementBits, elementBits2:
				if len(a.Data) == 1 {
					bits[a.Type/elementBits2] = int(a.Data[0])
				}
			case elementMAC, elementDevice:
				out.AddName(a.Data)
			}
		}
		for i, dimension := range []byte{first, others} {
			const whole = 8 // bits of a byte
			if b := addresses[i]; of&dimension != 0 && b != nil {
				if bits[i] == 0 {
					bits[i] = whole * len(b)
				}
				out.AddNet(b, bits[i])
			}
		}
	}
}

// within returns the attributes in another one, without flags in their types, up to a damaged one.
func within(a netlink.Attribute) []netlink.Attribute {
	list, _ := netlink.UnmarshalAttributes(a.Data)
	for i := range list {
		list[i].Type &^= flags
	}
	return list
}
