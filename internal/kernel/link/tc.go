package link

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

type discipline struct {
	kind           string
	handle, parent uint32
	options        []byte
	blocks         string // filter blocks shared with other devices
}

type trafficControl map[int][]discipline

func traffic() (trafficControl, error) {
	msgs, err := tcDump(unix.RTM_GETQDISC, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("list queueing disciplines: %w", err)
	}
	out := trafficControl{}
	for _, m := range msgs {
		out[int(m.Ifindex)] = append(out[int(m.Ifindex)], m.discipline())
	}
	return out, nil
}

type tcMessage struct {
	*nl.TcMsg
	attrs fields
}

func tcDump(ask uint16, index int, parent uint32) ([]tcMessage, error) {
	request := &nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(index), Parent: parent}
	msgs, err := rawDump(ask, request.Serialize())
	if err != nil {
		return nil, err
	}
	var out []tcMessage
	for _, b := range msgs {
		attrs, err := fieldsOf(b, nl.SizeofTcMsg)
		if err != nil {
			return nil, err
		}
		m := tcMessage{nl.DeserializeTcMsg(b), attrs}
		if index == 0 || int(m.Ifindex) == index {
			out = append(out, m)
		}
	}
	return out, nil
}

// linux/rtnetlink.h
const (
	tcaIngressBlock = 13
	tcaEgressBlock  = 14
	tcaHTBInit      = 2
	tcaBPFName      = 7

	htbDirectPackets = 16 // in struct tc_htb_glob
)

func (m tcMessage) kind() string { return nl.BytesToString(m.attrs[nl.TCA_KIND]) }

func (m tcMessage) discipline() discipline {
	d := discipline{kind: m.kind(), handle: m.Handle, parent: m.Parent,
		options: m.attrs[nl.TCA_OPTIONS]}
	if d.kind == "htb" {
		d.options = withoutCount(d.options)
	}
	for _, b := range []uint16{tcaIngressBlock, tcaEgressBlock} {
		if len(m.attrs[b]) == 4 {
			d.blocks += fmt.Sprintf(" block %d", binary.NativeEndian.Uint32(m.attrs[b]))
		}
	}
	return d
}

func withoutCount(options []byte) []byte {
	attrs, err := nl.ParseRouteAttr(options)
	if err != nil {
		return options
	}
	var out []byte
	for _, a := range attrs {
		v := slices.Clone(a.Value)
		if a.Attr.Type == tcaHTBInit && len(v) >= htbDirectPackets+4 {
			clear(v[htbDirectPackets : htbDirectPackets+4])
		}
		out = append(out, v...)
	}
	return out
}

func (d discipline) String() string {
	text := d.kind + d.blocks + d.rate()
	if d.parent != netlink.HANDLE_ROOT && !d.hook() {
		text += " under " + netlink.HandleStr(d.parent)
	}
	if len(d.options) > 0 {
		text += fmt.Sprintf(" with options %06x", crc32.ChecksumIEEE(d.options)&0xffffff)
	}
	return text
}

func (d discipline) rate() string {
	if d.kind != "tbf" {
		return ""
	}
	const bitsPerByte, mega = 8, 1e6
	return fmt.Sprintf(" of %g Mbit/s", float64(shaped(d.kind, d.options))*bitsPerByte/mega)
}

func (d discipline) hook() bool { return d.kind == "clsact" || d.kind == "ingress" }

func (t trafficControl) disciplines(index int) string {
	var out []string
	for _, d := range t[index] {
		out = append(out, d.String())
		for _, c := range d.classes(index) {
			out = append(out, c.String())
		}
	}
	if len(out) == 0 {
		return nothing
	}
	return strings.Join(out, ", ")
}

// leaves lists disciplines without classes, or whose classes have no settings of their own.
var leaves = []string{"noqueue", "pfifo_fast", "pfifo", "bfifo", "fq_codel", "fq", "mq", "tbf",
	"netem", "clsact", "ingress"}

func (d discipline) classes(index int) (out []discipline) {
	if slices.Contains(leaves, d.kind) {
		return nil
	}
	msgs, err := tcDump(unix.RTM_GETTCLASS, index, d.handle)
	if err != nil {
		return nil
	}
	for _, m := range msgs {
		c := discipline{kind: "class " + netlink.HandleStr(m.Handle), handle: m.Handle,
			parent: m.Parent, options: m.attrs[nl.TCA_OPTIONS]}
		if m.Handle>>16 == d.handle>>16 {
			out = append(out, c)
		}
	}
	return out
}

func (t trafficControl) filters(index int) ([]string, error) {
	var out []string
	add := func(where string, parent uint32) error {
		msgs, err := tcDump(unix.RTM_GETTFILTER, index, parent)
		for _, m := range msgs {
			// A filter without options only stands for a chain or a priority.
			if len(m.attrs[nl.TCA_OPTIONS]) > 0 {
				out = append(out, where+" "+m.filter())
			}
		}
		return err
	}
	for _, d := range t[index] {
		var err error
		switch {
		case d.kind == "clsact":
			if err = add("ingress", netlink.HANDLE_MIN_INGRESS); err == nil {
				err = add("egress", netlink.HANDLE_MIN_EGRESS)
			}
		case d.kind == "ingress":
			err = add("ingress", netlink.HANDLE_MIN_INGRESS)
		case d.kind != "noqueue":
			err = add("egress", d.handle)
			for _, c := range d.classes(index) {
				if err == nil {
					err = add("egress", c.handle)
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func (m tcMessage) filter() string {
	text := m.kind()
	attrs, err := nl.ParseRouteAttr(m.attrs[nl.TCA_OPTIONS])
	if err != nil || text != "bpf" {
		return text
	}
	for _, a := range attrs {
		if a.Attr.Type == tcaBPFName {
			text += " " + nl.BytesToString(a.Value)
		}
	}
	return text
}
