package link

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

// ReadNeighbours reads permanent neighbour entries, proxy entries, and static forwarding entries of
// bridges.
func ReadNeighbours() ([]raw.Message, error) {
	own, err := rawList("neighbours", unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH, bothFamilies,
		unix.SizeofNdMsg, func(b []byte) bool { return neighbourOf(b).state == unix.NUD_PERMANENT })
	if err != nil {
		return nil, err
	}
	proxies, err := rawDump(unix.RTM_GETNEIGH, neighbour{flags: unix.NTF_PROXY}.header())
	if err != nil {
		return nil, fmt.Errorf("list neighbours: %w", err)
	}
	for _, b := range proxies {
		if len(b) >= unix.SizeofNdMsg && neighbourOf(b).flags&unix.NTF_PROXY != 0 {
			own = append(own, raw.Message{Type: unix.RTM_NEWNEIGH, Data: b})
		}
	}
	static, err := rawList("entries of bridges", unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH,
		[]byte{unix.AF_BRIDGE}, unix.SizeofNdMsg, func(b []byte) bool {
			f, err := fieldsOf(b, unix.SizeofNdMsg)
			return err == nil && f.has(unix.NDA_MASTER) && neighbourOf(b).state == unix.NUD_NOARP
		})
	return append(own, static...), err
}

// MakeNeighbours adds neighbour entries. It leaves out permanent ones for which absent, given their
// device and hardware address as a string of bytes, returns true.
func MakeNeighbours(ms []raw.Message, absent func(index int, mac string) bool) []raw.Refused {
	ms = slices.DeleteFunc(slices.Clone(ms), func(m raw.Message) bool {
		if len(m.Data) < unix.SizeofNdMsg {
			return false
		}
		n := neighbourOf(m.Data)
		f, _ := fieldsOf(m.Data, unix.SizeofNdMsg)
		return n.flags&unix.NTF_PROXY == 0 && absent(n.index, string(f[unix.NDA_LLADDR]))
	})
	return restore{unix.RTM_NEWNEIGH, unix.SizeofNdMsg,
		func(c sender, b []byte) error {
			n := neighbourOf(b)
			if n.family == unix.AF_BRIDGE {
				n.flags |= unix.NTF_MASTER
			}
			n.flags &= unix.NTF_PROXY | unix.NTF_MASTER | unix.NTF_ROUTER
			list, err := only(b, unix.SizeofNdMsg, unix.NDA_DST, unix.NDA_LLADDR, unix.NDA_VLAN)
			if err != nil {
				return err
			}
			return c.send(unix.RTM_NEWNEIGH, netlink.Create|netlink.Replace,
				append(n.header(), marshal(list...)...))
		},
		neighbourText, indexOf}.all(ms)
}

func neighbourText(b []byte, names map[int]string) string {
	f, _ := fieldsOf(b, unix.SizeofNdMsg)
	who := net.HardwareAddr(f[unix.NDA_LLADDR]).String()
	if a, ok := netip.AddrFromSlice(f[unix.NDA_DST]); ok {
		who = a.String()
	}
	return fmt.Sprintf("neighbour %s of %s", who, names[indexOf(b)])
}

// neighbour is struct ndmsg.
type neighbour struct {
	family, flags, kind byte
	index               int
	state               uint16
}

func neighbourOf(b []byte) neighbour {
	return neighbour{family: b[0], index: indexOf(b), state: binary.NativeEndian.Uint16(b[8:]),
		flags: b[10], kind: b[11]}
}

func (n neighbour) header() []byte {
	b := make([]byte, unix.SizeofNdMsg)
	b[0], b[10], b[11] = n.family, n.flags, n.kind
	binary.NativeEndian.PutUint32(b[4:], uint32(n.index))
	binary.NativeEndian.PutUint16(b[8:], n.state)
	return b
}
