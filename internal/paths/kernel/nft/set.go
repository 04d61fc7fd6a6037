package nft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/paths/firewall"
)

type set struct {
	elements []nftables.SetElement
	interval bool
	verdicts bool
	err      error
}

type sets struct {
	conn *nftables.Conn
	read map[setKey]*set
}

type setKey struct {
	family      nftables.TableFamily
	table, name string
}

func (s *sets) get(table *nftables.Table, name string) *set {
	key := setKey{table.Family, table.Name, name}
	if have := s.read[key]; have != nil {
		return have
	}
	out := &set{}
	var head *nftables.Set
	if head, out.err = s.conn.GetSetByName(table, name); out.err == nil {
		out.interval = head.Interval
		out.elements, out.err = s.conn.GetSetElements(head)
		// For verdicts, the library also reports the key's type as one.
		out.verdicts = head.IsMap && head.KeyType.Name == nftables.TypeVerdict.Name
	}
	if s.read == nil {
		s.read = map[setKey]*set{}
	}
	s.read[key] = out
	return out
}

func (r *reader) lookup(e *expr.Lookup) {
	s := r.sets.get(r.table, e.SetName)
	if s.err != nil || e.IsDestRegSet != s.verdicts || e.DestRegister != unix.NFT_REG_VERDICT {
		if e.IsDestRegSet && e.DestRegister == unix.NFT_REG_VERDICT {
			r.other("a map")
			return
		}
		if e.IsDestRegSet {
			r.put(e.DestRegister, unknown)
		}
		r.unread("a set")
		return
	}
	l := firewall.Lookup{Not: e.Invert}
	var widths []int
	known := true
	if len(s.elements) > 0 {
		l.Fields, widths, known = r.fields(e.SourceRegister, len(s.elements[0].Key))
	}
	if known {
		l.Elements, known = elements(s, widths)
	}
	switch {
	case !known && e.IsDestRegSet:
		r.other("a map")
	case !known:
		r.unread("a set")
	case e.IsDestRegSet:
		r.rule.Map = &l
	default:
		r.rule.Sets = append(r.rule.Sets, l)
	}
}

func slot(reg uint32) uint32 {
	if reg >= unix.NFT_REG32_00 || reg == unix.NFT_REG_VERDICT {
		return reg
	}
	return unix.NFT_REG32_00 + (reg-unix.NFT_REG_1)*(unix.NFT_REG_SIZE/unix.NFT_REG32_SIZE)
}

func (r *reader) fields(reg uint32, size int) (out []firewall.Field, widths []int, ok bool) {
	for at := slot(reg); size > 0; {
		f, width := r.fieldAt(at)
		if f == firewall.NoField || r.mask[at] != nil {
			return nil, nil, false
		}
		out, widths = append(out, f), append(widths, width)
		whole := padded(width)
		if len(out) == 1 && size == width {
			whole = width
		}
		size -= whole
		at += uint32(padded(width) / unix.NFT_REG32_SIZE)
	}
	return out, widths, size == 0
}

func padded(width int) int {
	return (width + unix.NFT_REG32_SIZE - 1) / unix.NFT_REG32_SIZE * unix.NFT_REG32_SIZE
}

// kinds lists the fields that every packet has, with their sizes; 0: as loaded. Some bits of Status
// are unknown, so it is missing.
var kinds = map[field]struct {
	field firewall.Field
	size  int
}{
	inName: {firewall.InName, unix.IFNAMSIZ}, outName: {firewall.OutName, unix.IFNAMSIZ},
	srcAddr:     {firewall.SrcAddr, 0},
	dstAddr:     {firewall.DstAddr, 0},
	protocolOf:  {firewall.Protocol, 1},
	dport:       {firewall.DstPort, 2},
	nfproto:     {firewall.Family, 1},
	ctState:     {firewall.State, 4},
	ctDirection: {firewall.Direction, 1},
	ctProtocol:  {firewall.ConnProtocol, 1},
	ctOrigSrc:   {firewall.OrigSrc, 0},
	ctOrigDst:   {firewall.OrigDst, 0},
	ctOrigDport: {firewall.OrigDstPort, 2},
	ctReplSrc:   {firewall.ReplSrc, 0},
	ctReplDst:   {firewall.ReplDst, 0},
	ctReplSport: {firewall.ReplSrcPort, 2},
}

func (r *reader) fieldAt(at uint32) (firewall.Field, int) {
	w, ok := kinds[r.regs[at]]
	switch {
	case !ok:
		return firewall.NoField, 0
	case w.size != 0:
		return w.field, w.size
	case r.size[at] == 4 || r.size[at] == 16:
		return w.field, r.size[at]
	}
	return firewall.NoField, 0
}

func elements(s *set, widths []int) (out []firewall.Element, known bool) {
	all := slices.Clone(s.elements)
	if s.interval { // the next interval may start where one ends
		slices.SortStableFunc(all, func(a, b nftables.SetElement) int {
			if c := bytes.Compare(a.Key, b.Key); c != 0 || a.IntervalEnd == b.IntervalEnd {
				return c
			}
			if a.IntervalEnd {
				return -1
			}
			return 1
		})
	}
	for i, x := range all {
		if x.IntervalEnd || len(x.Key) == 0 { // an interval's end, or a map's default
			if len(x.Key) == 0 {
				return nil, false
			}
			continue
		}
		low, high := x.Key, x.Key
		switch {
		case len(x.KeyEnd) > 0:
			high = x.KeyEnd
		case s.interval:
			high = last(all[i+1:], len(low))
		}
		e := firewall.Element{}
		for _, w := range widths {
			if len(low) < w || len(high) < w {
				return nil, false
			}
			e.Key = append(e.Key, firewall.Range{Low: low[:w], High: high[:w]})
			low, high = low[min(padded(w), len(low)):], high[min(padded(w), len(high)):]
		}
		if s.verdicts {
			var err error
			if e.Verdict, e.Chain, err = verdictData(x.Val); err != nil {
				return nil, false
			}
		}
		out = append(out, e)
	}
	return out, true
}

func last(next []nftables.SetElement, size int) []byte {
	if len(next) == 0 || len(next[0].Key) != size {
		return bytes.Repeat([]byte{0xff}, size)
	}
	out := slices.Clone(next[0].Key)
	for i := size - 1; i >= 0; i-- {
		out[i]--
		if out[i] != 0xff {
			break
		}
	}
	return out
}

var errVerdict = errors.New("no verdict")

func verdictData(b []byte) (v firewall.Verdict, chain string, err error) {
	attrs, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return v, "", err
	}
	attrs.ByteOrder = binary.BigEndian
	known := false
	for attrs.Next() {
		switch attrs.Type() {
		case unix.NFTA_VERDICT_CODE:
			v, known = verdictOf(expr.VerdictKind(int32(attrs.Uint32())))
		case unix.NFTA_VERDICT_CHAIN:
			chain = attrs.String()
		}
	}
	if err := attrs.Err(); err != nil {
		return v, "", err
	}
	if !known {
		return v, "", errVerdict
	}
	return v, chain, nil
}
