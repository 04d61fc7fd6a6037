package firewall

import (
	"bytes"
	"net/netip"
)

// An open answer may differ for others, because the source or the port is only an example.
type answer struct{ yes, open bool }

func sure(yes bool) answer { return answer{yes: yes} }

// A definite no decides.
func (a answer) and(b answer) answer {
	switch {
	case !a.yes && !a.open || !b.yes && !b.open:
		return answer{}
	}
	return answer{yes: a.yes && b.yes, open: a.open || b.open}
}

func (a answer) not(not bool) answer {
	a.yes = a.yes != not
	return a
}

func (r *Rule) matches(p *Packet) answer {
	out := sure(r.In.matches(p.In) && r.Out.matches(p.Out) && r.Dst.matches(p.Dst) &&
		r.SrcLocal.matches(p.SrcLocal) && r.DstLocal.matches(p.DstLocal) &&
		(r.Proto == "" || r.Proto == p.Proto)).and(r.Ports.to(p)).and(r.Src.from(p))
	for i := range r.Sets {
		out = out.and(r.Sets[i].matches(p))
	}
	return out
}

func (n Net) from(p *Packet) answer {
	if !n.Prefix.IsValid() {
		return sure(true)
	}
	return p.from(prefixRange(n.Prefix)).not(n.Not)
}

func (p *Packet) from(r Range) answer {
	now := r.has(addrBytes(p.Src))
	if p.Sources == nil {
		return sure(now)
	}
	can, must := p.Sources.in(r)
	return answer{yes: now && can || must, open: can && !must}
}

func (s *Sources) in(r Range) (can, must bool) {
	all := prefixRange(s.Among)
	if len(r.Low) != len(all.Low) || bytes.Compare(r.High, all.Low) < 0 ||
		bytes.Compare(r.Low, all.High) > 0 {
		return false, false
	}
	for _, not := range s.Except {
		if x := prefixRange(not); len(x.Low) == len(r.Low) && x.has(r.Low) && x.has(r.High) {
			return false, false
		}
	}
	return true, r.has(all.Low) && r.has(all.High)
}

func prefixRange(p netip.Prefix) Range {
	low := p.Masked().Addr().AsSlice()
	high := bytes.Clone(low)
	for i := p.Bits(); i < 8*len(high); i++ {
		high[i/8] |= 0x80 >> (i % 8)
	}
	return Range{low, high}
}

func (r Range) has(b []byte) bool {
	return len(b) == len(r.Low) && len(b) == len(r.High) && bytes.Compare(b, r.Low) >= 0 &&
		bytes.Compare(b, r.High) <= 0
}
