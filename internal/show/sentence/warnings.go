package sentence

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
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
	if row := rowOf(f); row != "" {
		return fillDoubted(row, f)
	}
	if text := runWarning(f); text != "" {
		return text
	}
	return cellWarning(f)
}

func cellWarning(f analysis.Finding) string {
	x := f.Values[f.Code]
	switch f.Code {
	case analysis.FewRounds:
		return fewRounds(f)
	case analysis.PathMTU:
		return pathMTU(f)
	case analysis.OverWire:
		return "throughput exceeds the wire's rate: traffic shaping was removed"
	case analysis.ThinTail:
		load, _ := workload.Find(f.Load)
		return "too few samples for " + f.What + ": use more rounds or " + load.MoreSamples()
	case analysis.LostSlices:
		return fmt.Sprintf("%.0f %% of the slices began late or were cut short, and are left out: the "+
			"machine was busy with something else", 100*x) +
			told(f.Values[workload.Resent] > 0, ", or TCP waited for lost packets")
	case analysis.Repeats:
		return "the congestion control's pacing differs from run to run: the interval is as wide as " +
			"repeated runs show"
	case analysis.FailedRounds:
		why := "the machine was too busy to measure every row; what it missed is left out"
		if f.Why != "" {
			why = f.Why + "; these rounds are left out"
		}
		return fmt.Sprintf("in %d of %d rounds %s", f.N, f.Of, why)
	case analysis.BrokenRoute:
		return fmt.Sprintf("the route broke in round %d, %.1f s after the start, and did not come "+
			"back; the figures are from before that: %s", f.N, x, f.Why)
	case analysis.FailedVisits:
		return fmt.Sprintf("%d of %d visits failed and %s left out, the last one in round %.0f: %s", f.N,
			f.Of, units.Agree(f.N, "is", "are"), x, f.Why)
	}
	return ""
}

func pathMTU(f analysis.Finding) string {
	other := "client"
	if f.What == other {
		other = "server"
	}
	text := fmt.Sprintf("segments are %.0f bytes: the path carries packets of %.0f, but the %s's %s "+
		"has an MTU of %.0f", f.Values[analysis.SegmentPayload], f.Values[analysis.SegmentPacket], f.What,
		f.On, f.Values[analysis.PathMTU])
	if f.Why != "" {
		return text + fmt.Sprintf(" and the %s's %s one of %.0f", other, f.Why,
			f.Values[analysis.OtherMTU])
	}
	return text + ": something between has a smaller MTU (a tunnel, a VPN, a network of its own)"
}

func fewRounds(f analysis.Finding) string {
	const leastSpread = 2 // rounds that an interval needs
	least, lacks := stats.MinValues, "the intervals are too narrow to rely on"
	switch {
	case f.N < leastSpread:
		least, lacks = leastSpread, "too few for a verdict, and there is no interval"
	case f.N < stats.MinJudged:
		least, lacks = stats.MinJudged, "too few for a verdict, and "+lacks
	}
	return fmt.Sprintf("fewer than %d rounds%s: %s", least, told(f.Why != "",
		" fitted into the budget"), lacks)
}

func runWarning(f analysis.Finding) string {
	x, pin := f.Values[f.Code], told(f.Pin != "", ", on "+analysis.PinWords(f.Pin))
	switch f.Code {
	case analysis.Truncated:
		return "the results file is incomplete: the run was killed, and this report has what it had " +
			"measured"
	case analysis.Aborted:
		return "the run was aborted: " + f.What
	case analysis.Steal:
		return fmt.Sprintf("the hypervisor took %.1f %% of the CPU time away, which makes results "+
			"noisier", 100*x)
	case analysis.OtherLoad:
		return fmt.Sprintf("something else kept %.2f CPUs busy during the run: close it and run again "+
			"for narrower intervals", x)
	case analysis.Throttled:
		return "the cgroup's CPU limit paused the run " + units.Plural(int(x), "time") +
			": throughput and latency show the limit, not the network"
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
