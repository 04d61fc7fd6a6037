package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

var errBusy = errors.New("the rules keep changing")

// Save reads all rules, or none if the kernel lacks nf_tables.
func Save() (Saved, error) {
	c, err := raw.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return Saved{}, fmt.Errorf("open nftables: %w", err)
	}
	defer func() { _ = c.Close() }()
	const tries = 5
	for range tries {
		before, err := Generation()
		if err != nil {
			return Saved{}, err
		}
		out, err := save(c)
		if Unsupported(err) && before == 0 {
			return Saved{}, nil
		}
		after, again := Generation()
		switch {
		case again != nil:
			return Saved{}, again
		case before != after: // in this case err may be about a set that was removed
			continue
		case err != nil:
			return Saved{}, fmt.Errorf("read nftables: %w", err)
		}
		return out, nil
	}
	return Saved{}, fmt.Errorf("read nftables: %w", errBusy)
}

func save(c *netlink.Conn) (out Saved, err error) {
	for _, kind := range []uint16{unix.NFT_MSG_GETTABLE, unix.NFT_MSG_GETCHAIN, unix.NFT_MSG_GETOBJ,
		unix.NFT_MSG_GETFLOWTABLE, unix.NFT_MSG_GETSET, unix.NFT_MSG_GETRULE} {
		found, err := dump(c, kind, make([]byte, headerSize))
		if err != nil {
			return out, err
		}
		if err := out.add(found); err != nil {
			return out, err
		}
		if kind != unix.NFT_MSG_GETSET {
			continue
		}
		for _, set := range found {
			request, err := elementsOf(set.Data)
			if err != nil {
				return out, err
			}
			elements, err := dump(c, unix.NFT_MSG_GETSETELEM, request)
			if err != nil {
				return out, err
			}
			if err := out.add(elements); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// add appends messages, without the attributes that Restore would remove, such as addresses of
// kernel code.
func (s *Saved) add(found []netlink.Message) error {
	s.Messages = slices.Grow(s.Messages, len(found))
	var all attributes
	for _, m := range found {
		var err error
		if all, err = all[:0].decode(m.Data[headerSize:]); err != nil {
			return err
		}
		keep, size := copied[uint16(m.Header.Type)&0xff], headerSize
		all = slices.DeleteFunc(all, func(x attribute) bool { return !slices.Contains(keep, x.kind) })
		for _, x := range all {
			size += aligned(unix.NLA_HDRLEN + len(x.data))
		}
		b := append(make([]byte, 0, size), m.Data[0], unix.NFNETLINK_V0, 0, 0)
		for _, x := range all {
			b = x.append(b)
		}
		s.Messages = append(s.Messages, raw.Message{Type: uint16(m.Header.Type), Data: b})
	}
	return nil
}

func elementsOf(set []byte) ([]byte, error) {
	a, err := decode(set[headerSize:])
	if err != nil {
		return nil, err
	}
	request, err := encode(attributes{{unix.NFTA_SET_ELEM_LIST_TABLE, a.get(unix.NFTA_SET_TABLE)},
		{unix.NFTA_SET_ELEM_LIST_SET, a.get(unix.NFTA_SET_NAME)}})
	return append([]byte{set[0], unix.NFNETLINK_V0, 0, 0}, request...), err
}

// append appends the attribute in the kernel's form.
func (x attribute) append(b []byte) []byte {
	size := unix.NLA_HDRLEN + len(x.data)
	b = binary.NativeEndian.AppendUint16(b, uint16(size))
	b = binary.NativeEndian.AppendUint16(b, x.kind)
	b = append(b, x.data...)
	return append(b, make([]byte, aligned(size)-size)...)
}

func encode(a attributes) ([]byte, error) {
	out := make([]netlink.Attribute, len(a))
	for i, x := range a {
		out[i] = netlink.Attribute{Type: x.kind, Data: x.data}
	}
	return netlink.MarshalAttributes(out)
}

func (a attributes) only(kinds []uint16) attributes {
	return slices.DeleteFunc(slices.Clone(a), func(x attribute) bool {
		return !slices.Contains(kinds, x.kind)
	})
}

// without returns the attributes of other kinds.
func (a attributes) without(kinds ...uint16) attributes {
	return slices.DeleteFunc(slices.Clone(a), func(x attribute) bool {
		return slices.Contains(kinds, x.kind)
	})
}

func (a attributes) with(kind uint16, data []byte) attributes {
	return append(a.without(kind), attribute{kind, data})
}

// Saved has all nf_tables rules of a namespace, those of iptables-nft included, in the order in
// which they can be made: tables, chains, objects, sets, elements, rules.
type Saved struct {
	Messages []raw.Message `json:"messages,omitempty"`
}
