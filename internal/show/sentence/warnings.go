package sentence

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// FillWarnings sets the texts of warnings that have values.
func FillWarnings(all []analysis.Warning) {
	for i, x := range all {
		if x.Found != nil {
			all[i].Text = warning(*x.Found)
		}
	}
}

func warning(f analysis.Finding) string {
	x, pin := f.Values[f.Code], told(f.Pin != "", ", on "+analysis.PinWords(f.Pin))
	switch f.Code {
	case analysis.Steal:
		return fmt.Sprintf("the hypervisor took %.1f %% of the CPU time away, which makes results "+
			"noisier", 100*x)
	case analysis.OtherLoad:
		return fmt.Sprintf("something else kept %.2f CPUs busy during the run: close it and run again "+
			"for narrower intervals", x)
	case analysis.Throttled:
		return fmt.Sprintf("the cgroup's CPU limit paused the run %.0f times: throughput and latency "+
			"show the limit, not the network", x)
	case analysis.CgroupLimit:
		return fmt.Sprintf("a cgroup limits this run to %.2g CPUs; client and server alone need two", x)
	case analysis.Paced:
		return fmt.Sprintf("TCP's congestion control here is %s, which paces what it sends: bulk "+
			"measures its pacing more than the path. Containers on this machine use it too. To see "+
			"what the paths can carry, use %s", f.What, congestionSetters[f.Why])
	case analysis.SlotBias:
		return fmt.Sprintf("%s from %s%s: a slice's result depends on the slice before it: %s, measured "+
			"among the other modes, has %s of its usual figure", f.Load, f.From.Words(), pin, f.What,
			f.Ratios[0])
	case analysis.NoBaseline:
		return fmt.Sprintf("from %s, %s%s: no ratios, because the baseline %s %s", f.From.Words(), f.Load,
			pin, f.What, map[string]string{analysis.Unreachable: "cannot be reached from there",
				analysis.NoResult: "has no result"}[f.Why])
	case analysis.SameCore:
		return map[string]string{analysis.SharedCore: "client and server shared one core: throughput " +
			"and latency are those of a machine with a single core",
			analysis.OnlyCPU: "toll may use only one CPU: client and server shared it and were not " +
				"measured on separate CPUs"}[f.What]
	case analysis.HalfDuplex:
		return fmt.Sprintf("%s of %s came up in half duplex: data and acknowledgements wait for each "+
			"other and collide. Let both ends of the cable negotiate (ethtool -s %s autoneg on, and "+
			"the switch's port)", f.What, f.Why, f.What)
	case analysis.SlowLink:
		partner, known := f.Values[analysis.CardPartner]
		return fmt.Sprintf("%s of %s came up at %s, but the card can do %s: look at the cable, the "+
			"transceiver and the switch's port", f.What, f.Why, units.Rate(x),
			units.Rate(f.Values[analysis.CardMost])) +
			told(known, ", which offers at most "+units.Rate(partner))
	}
	return ""
}

const setCongestion = "sysctl -w net.ipv4.tcp_congestion_control=cubic (or reno) on "

var congestionSetters = map[string]string{analysis.ByFlag: "--congestion reno",
	analysis.ByMachine: setCongestion + "this machine", analysis.ByNodes: setCongestion + "the nodes"}
