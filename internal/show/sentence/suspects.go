package sentence

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// overRoutes returns the words for a blank with a text for each route, or a single one if all
// routes with data on suspects have the same.
func overRoutes(say func(analysis.Finding, analysis.Cell) string) blank {
	return func(w *writer, fs []analysis.Finding) string {
		var out, texts []string
		for _, f := range fs {
			c := w.r.Cells[f.Cells[0]]
			text := say(f, c)
			out, texts = append(out, w.observed(c)+": "+text), append(texts, text)
		}
		if n := len(fs); n > 1 && n == fs[0].Of && len(slices.Compact(texts)) == 1 {
			return "over every route: " + texts[0]
		}
		return strings.Join(out, "; ")
	}
}

// observed returns a route's name, with its load if the run has several.
func (w *writer) observed(c analysis.Cell) string {
	if len(w.r.Plan.Loads) > 1 {
		return c.Label() + ", " + c.Load
	}
	return c.Label()
}

func total(c analysis.Cell, metric string) float64 {
	if n := c.Metrics[metric].Merged; n != nil {
		return *n
	}
	return 0
}

func suspectOf(f analysis.Finding) workload.Suspect {
	all := workload.Suspects()
	return all[slices.IndexFunc(all, func(s workload.Suspect) bool { return s.Metric == f.What })]
}

func suspect(f analysis.Finding, c analysis.Cell) (text string) {
	s := suspectOf(f)
	switch n, of := total(c, s.Metric), total(c, s.Of); {
	case s.Unit == "1":
		text = fmt.Sprintf(s.Says, fmt.Sprintf("%.0f %%", 100*c.Metrics[s.Metric].Median))
	case of > 0:
		text = fmt.Sprintf(s.Says, whole(n), whole(of))
	case n == 1 && s.One != "":
		text = s.One
	case s.Of != "":
		text = fmt.Sprintf(s.Alone, whole(n))
	default:
		text = fmt.Sprintf(s.Says, whole(n))
	}
	resent := total(c, workload.Resent)
	switch connects := total(c, workload.ResentConnects); s.Metric {
	case workload.Resent:
		if connects >= endpoints.Mostly*resent {
			text += ", " + most(connects, resent) +
				"to open connections: the server's listen queue was full, or they were lost"
		}
	case workload.ServerOverflows:
		if resent > 0 && endpoints.QueueFull(c) {
			says, remedy, _ := strings.Cut(text, ": ")
			text = says + ", so the client sent " + whole(resent) + " segments again: " + remedy
		}
	}
	if s.Server {
		text = "the server" + called(c.Facts["container"]) + ": " + text
	}
	return text
}

// most returns "most of them " or, if n is all, "all ".
func most(n, all float64) string {
	if n < all {
		return "most of them "
	}
	return "all of them "
}

func whole(n float64) string { return fmt.Sprintf("%.0f", n) }

func called(name string) string {
	if name == "" {
		return ""
	}
	return " in container " + name
}

func lookedUp(_ analysis.Finding, c analysis.Cell) string {
	each := "once for each connection"
	if _, ok := c.Metrics[workload.Dialled]; ok {
		each = "not counted: the client gets the address"
	}
	return fmt.Sprintf("its name took %s to look up, %s",
		workload.Briefly(c.Metrics[workload.LookUpTime].Median), each)
}

func passedOver(_ analysis.Finding, c analysis.Cell) string {
	return fmt.Sprintf("connecting takes %s, because the first address of its name, %s, does not "+
		"answer", workload.Briefly(c.Metrics[workload.ConnectTime].Median),
		c.Facts[sample.FactUnanswered])
}

func delayed(f analysis.Finding, _ analysis.Cell) (text string) {
	const remedy = " (one end writes in two pieces and waits for the other's acknowledgement in " +
		"between: set TCP_NODELAY there, or write once)"
	wait := workload.Briefly(f.Values[endpoints.Wait])
	counted := fmt.Sprintf("it waits for delayed acknowledgements of 40 ms, of which the kernel "+
		"counted %.0f", f.Values[endpoints.ACKs])
	if f.Code == endpoints.KeptDelay {
		return "over a kept connection, a response has a wait that is " + wait + " longer than over " +
			"a new one: " + counted + remedy
	}
	text = f.What + " takes " + wait
	if rtt := f.Values[workload.RTT]; rtt > 0 {
		text += " at a round trip of " + workload.Briefly(rtt) + ", without loss"
	}
	if f.Code == endpoints.ACKDelay {
		return text + ": " + counted + remedy
	}
	return text + ": as long as a delayed acknowledgement" + remedy
}

// absent returns the suspects that slowed no route down.
func (w *writer) absent(fs []analysis.Finding) string {
	var out []string
	for _, f := range fs {
		if f.What == workload.LookUpTime {
			out = append(out, "no look-up of a name took long")
			continue
		}
		none := suspectOf(f).None
		if f.What == workload.Resent {
			none = w.fewLost(f)
		}
		out = append(out, none)
	}
	return printable.List(out)
}

// fewLost returns how many segments were lost or out of order. It leaves out those that a full
// listen queue explains, which is another suspect.
func (w *writer) fewLost(f analysis.Finding) string {
	n, other := 0.0, ""
	for _, c := range w.cells(f) {
		n += total(c, workload.OutOfOrder)
		if endpoints.QueueFull(c) {
			other = "other "
		} else {
			n += total(c, workload.Resent)
		}
	}
	switch n {
	case 0:
		return "no " + other + "segment was lost or out of order"
	case 1:
		return "only 1 " + other + "segment was lost or out of order"
	}
	return "only " + whole(n) + " " + other + "segments were lost or out of order"
}

// unexamined returns which routes' servers were not examined, or "" for all.
func (w *writer) unexamined(fs []analysis.Finding) string {
	labels := analysis.Distinct(w.cells(fs[0]), w.observed)
	if len(labels) == fs[0].Of {
		return ""
	}
	return " of " + printable.List(labels)
}

// orFast returns the command that redirects clients of an address past docker-proxy, as an
// alternative, or "" if toll fast does not redirect them.
func orFast(dial string) string {
	host, port, err := net.SplitHostPort(dial)
	a, _ := netip.ParseAddr(host)
	if err != nil || host != "localhost" && !a.IsLoopback() {
		return ""
	}
	return ", or sudo toll fast on " + port
}

// offloads returns what is off at one end of the first route, unlike that of the second.
func (w *writer) offloads(fs []analysis.Finding) string {
	slow, fast := w.r.Cells[fs[0].Cells[0]], w.r.Cells[fs[0].Cells[1]]
	for _, e := range endpoints.Ends {
		if e.Whose == fs[0].What {
			off := endpoints.OnlyOff(slow.Facts[e.Off], fast.Facts[e.Off])
			return fmt.Sprintf("%s: %s %s has %s off, unlike that of %s: %s", slow.Label(), e.Whose,
				slow.Facts[e.Device], printable.List(off), fast.Label(),
				turnOn(slow.Facts[e.Device], off))
		}
	}
	return ""
}

func turnOn(device string, off []string) string {
	short := map[string]string{"tx-checksum": "tx", "scatter": "sg"}
	text := "ethtool -K " + device
	for _, name := range off {
		if s := short[name]; s != "" {
			name = s
		}
		text += " " + name + " on"
	}
	return text + " (not tried: a copy of the network has no device like it)"
}
