package link

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

var bothFamilies = []byte{unix.AF_INET, unix.AF_INET6}

// rawList requests a dump for each family. It drops messages of other families, because a kernel
// without IPv6 answers a request for IPv6 with those of all families.
func rawList(what string, ask, answer uint16, families []byte, header int,
	keep func([]byte) bool) (out []raw.Message, err error) {
	for _, family := range families {
		request := make([]byte, header)
		request[0] = family
		msgs, err := rawDump(ask, request)
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", what, err)
		}
		for _, b := range msgs {
			if len(b) >= header && (family == unix.AF_UNSPEC || b[0] == family) &&
				(keep == nil || keep(b)) {
				out = append(out, raw.Message{Type: answer, Data: b})
			}
		}
	}
	return out, nil
}

// restore makes objects from messages in the calling thread's namespace: send makes one, text
// describes it, out is its device's index, or 0.
type restore struct {
	kind   uint16
	header int
	send   func(c sender, b []byte) error
	text   func(b []byte, names map[int]string) string
	out    func(b []byte) int
}

func (r restore) all(ms []raw.Message) (refused []raw.Refused) {
	c, err := openSender()
	if err != nil {
		return []raw.Refused{{What: "everything", Err: err}}
	}
	defer func() { _ = c.Close() }()
	var names map[int]string
	for _, m := range ms {
		err := errShort
		whole := m.Type == r.kind && len(m.Data) >= r.header
		if whole {
			err = r.send(c, m.Data)
		}
		if err == nil || errors.Is(err, unix.EEXIST) {
			continue
		}
		if names == nil {
			names = namesByIndex()
		}
		x := raw.Refused{What: "a message of another kind", Err: reason(err)}
		if whole {
			x.What, x.Device = r.text(m.Data, names), names[r.out(m.Data)]
		}
		refused = append(refused, x)
	}
	return refused
}

func namesByIndex() map[int]string {
	out := map[int]string{}
	links, _ := ReadLinks() // after an error, the text lacks names
	for _, l := range links {
		out[l.Index] = l.Name
	}
	return out
}

// reason returns the kernel's words for an error, if it has any.
func reason(err error) error {
	var op *netlink.OpError
	switch {
	case !errors.As(err, &op):
		return err
	case op.Message != "":
		return fmt.Errorf("%s: %w", op.Message, op.Err)
	}
	return op.Err
}

// only returns the attributes of a message with the given types.
func only(b []byte, header int, kinds ...uint16) ([]netlink.Attribute, error) {
	list, err := attributesOf(b, header)
	return slices.DeleteFunc(list, func(a netlink.Attribute) bool {
		return !slices.Contains(kinds, typeOf(a))
	}), err
}

func without(list []netlink.Attribute, kinds ...uint16) []netlink.Attribute {
	return slices.DeleteFunc(list, func(a netlink.Attribute) bool {
		return slices.Contains(kinds, typeOf(a))
	})
}
