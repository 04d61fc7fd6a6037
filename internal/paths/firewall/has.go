package firewall

import "net/netip"

// Has reports whether the rule has the verdict and every match of want.
func (r Rule) Has(want Rule) bool {
	return says(want.In, r.In) && says(want.Out, r.Out) && says(want.Src, r.Src) &&
		says(want.Dst, r.Dst) &&
		says(want.SrcLocal, r.SrcLocal) && says(want.DstLocal, r.DstLocal) &&
		says(want.Proto, r.Proto) &&
		says(want.Ports, r.Ports) &&
		says(want.Verdict, r.Verdict) && says(want.Chain, r.Chain) && says(want.To, r.To)
}

func says[T interface {
	comparable
	Device | Net | Ports | Local | Verdict | string | netip.AddrPort
}](want, is T) bool {
	var nothing T
	return want == nothing || want == is
}
