package endpoints

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// ServedAnswer says where the time of the requests goes that a server answered.
func ServedAnswer(s *sample.Served) *analysis.Answer {
	server := s.Server
	server.Process = cmp.Or(server.Process, "the server")
	a := &analysis.Answer{Question: fmt.Sprintf("Where does the time of requests to %s go?",
		server.Place()), Text: []string{}}
	if s.Requests == 0 {
		a.Add(fmt.Sprintf("No request was answered in %.3g s%s.", s.Elapsed, idle(s)))
		a.Add(incomplete(s))
		return a
	}
	over := "over " + units.Plural(s.Connections, "connection")
	if s.UDP {
		over = "over UDP from " + units.Plural(s.Connections, "client port")
	}
	slower := Slowed(s)
	about := ""
	if s.Estimated > 0 && s.Spells > 0 {
		about = "of about "
	}
	a.Add(fmt.Sprintf("%s %s in %.3g s, %s%.0f a second%s: %s each at the server's network "+
		"device, %s.", units.Plural(s.Requests, "request"), over, s.Followed, about, s.Rate(),
		spells(s, slower), workload.Briefly(s.Whole.Mean), servedList(s.Parts, alone(s))))
	a.Add(atClients(s))
	a.Add(slowed(s, slower))
	a.Add(tail(s))
	a.Add(slowest(s))
	for _, w := range s.Waits {
		if FewReplies*w.Tokens >= s.Requests {
			a.Add(Waited(w, "reply") + ".")
		}
	}
	a.Add(together(s))
	a.Add(incomplete(s))
	return a
}

// idle says over how many connections no request came, or "" if that is not known.
func idle(s *sample.Served) string {
	switch {
	case s.Open == nil, s.Unanswered > 0, s.TwoWay > 0, s.Successor != nil:
		return ""
	case *s.Open == 0:
		return ": nobody is connected. A longer --budget may see clients that come for each request"
	}
	return fmt.Sprintf(": %s open, and none carried any", units.Plural(*s.Open, "connection")+
		units.Agree(*s.Open, " is", " are"))
}

// atClients says what the requests' clients had of them, or that the times are without them.
func atClients(s *sample.Served) string {
	c := s.Client
	if c == nil {
		return "The clients, and what is between them and that device, are not in it: " + noClient(s) + "."
	}
	who := "Their clients, on this machine, had"
	if c.Requests < s.Requests {
		who = fmt.Sprintf("The clients of %d of them, on this machine, had", c.Requests)
	}
	from := "write"
	if s.UDP {
		from = "their device"
	}
	text := fmt.Sprintf("%s %s each from %s to read: %s until the request was at the server's device, "+
		"%s from the reply's departure until it was read", who, workload.Briefly(c.Whole.Mean), from,
		workload.Briefly(c.Parts[0].Mean), workload.Briefly(c.Parts[2].Mean))
	if c.Between.Max > 0 {
		text += fmt.Sprintf("; the next one followed after %s", workload.Briefly(c.Between.Mean))
	}
	return text + "."
}

// succeeded says what became of a server that stopped listening while it was watched.
func succeeded(server, now sample.EvidenceHop) string {
	said := "while it was watched, " + cmp.Or(server.Process, "the server")
	switch {
	case now.Port == 0:
		return said + " stopped listening, so that the requests a second are of a part of the time"
	case now.Process == server.Process && now.Process != "":
		return said + " was restarted: the requests to both processes count"
	}
	return said + " stopped listening, and " + cmp.Or(now.Process, "a program that toll cannot see") +
		" listens there now: the requests to both count"
}

// noClient says why nothing is known of the requests' clients.
func noClient(s *sample.Served) string {
	const shown = 3
	switch n := len(s.Dialled); {
	case n == 0:
		since := "6.16"
		if s.UDP {
			since = "6.3"
		}
		return "what clients do could not be recorded (that needs BPF, and Linux " + since +
			" or an earlier one with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS)"
	case n > shown:
		return fmt.Sprintf("no program of this machine that dials port %d, or another one of %d that lead "+
			"there, was seen to send the requests and read the replies", s.Server.Port, n)
	}
	var ports []string
	for _, p := range s.Dialled {
		ports = append(ports, strconv.Itoa(int(p)))
	}
	return "no program of this machine that dials port " + strings.Join(ports, " or ") +
		" was seen to send the requests and read the replies"
}

// alone reports whether the server's part is without its TCP.
func alone(s *sample.Served) bool { return s.Writes || s.UDP }

// together says how pipelined requests count, or "" if there are none.
func together(s *sample.Served) string {
	var say []string
	if s.Pipelined > 0 {
		say = append(say, fmt.Sprintf("%s came before the reply to the one before had left "+
			"(pipelined): each counts with its whole time, so that times overlap",
			units.Plural(s.Pipelined, "request")))
	}
	if s.Together > 0 {
		say = append(say, fmt.Sprintf("%s had several statements, which the server answers together: "+
			"each counts once", units.Plural(s.Together, "request")))
	}
	if s.Unread > 0 && s.UDP {
		say = append(say, units.Plural(s.Unread, "request")+units.Agree(s.Unread, " is", " are")+
			" not of DNS: each reply counts as that to the oldest request that waits for one")
	} else if s.Unread > 0 {
		say = append(say, fmt.Sprintf("the protocol of %s is not one that toll reads: all that a client "+
			"sends after the server did counts as one request, with pauses and pipelined requests in it, and "+
			"what a server sends unasked as a reply", units.Plural(s.Unread, "exchange")))
	}
	if len(say) == 0 {
		return ""
	}
	return printable.Capital(strings.Join(say, "; ")) + "."
}

// spells says that not all requests were followed, or "".
func spells(s *sample.Served, slower stats.Summary) string {
	if s.Spells == 0 {
		return ""
	}
	little := ", so that the server loses little"
	if slower.N > 0 || s.Spells <= leastPaces {
		little = ""
	}
	return fmt.Sprintf(", followed in %s, %.2g %% of %.3g s%s",
		units.Plural(s.Spells, "spell"), 100*s.Followed/s.Elapsed, s.Elapsed, little)
}

// leastPaces is of how many spells the pace must be known before it says anything.
const leastPaces = 5

// Slowed returns by how much less the server sent a second while it was followed, as a share, or N 0
// if that is not certain.
func Slowed(s *sample.Served) stats.Summary {
	const certain = 0.05 // of the pace in rests
	x := stats.Summarize(s.Pace)
	if x.N < leastPaces || !(1-x.High > certain) {
		return stats.Summary{}
	}
	return stats.Summary{Median: 1 - x.Median, Low: 1 - x.High, High: 1 - x.Low, N: x.N}
}

// slowed says by how much following slowed the server and what its clients have without that, or that
// the spells were too few for it, or "".
func slowed(s *sample.Served, x stats.Summary) string {
	if s.Spells > 0 && s.Spells <= leastPaces && !s.UDP {
		return "By how much following slows requests is not known from so few spells: a longer --budget " +
			"says it."
	}
	if x.N == 0 {
		return ""
	}
	without := "Without toll, requests that wait for others take that much less time."
	if s.Client != nil {
		all := s.Client.Whole.Mean
		without = fmt.Sprintf("Without toll, clients that wait for each reply have about %s (%s to %s) each.",
			workload.Briefly(all*(1-x.Median)), workload.Briefly(all*(1-x.High)),
			workload.Briefly(all*(1-x.Low)))
	}
	return fmt.Sprintf("Following slowed it: in the spells it sent %.0f %% (%.0f to %.0f) less a second "+
		"than between them. %s", 100*x.Median, 100*x.Low, 100*x.High, without)
}

// slow is from how many medians on a request is slow.
const slow = 3

// tail says which parts the p99 has, or "" if it is not slow.
func tail(s *sample.Served) string {
	if s.Tail == nil || s.Whole.P99 < slow*s.Whole.P50 {
		return ""
	}
	parts, whole := slices.Clone(s.Parts), 0.0
	for i := range parts {
		parts[i].Mean = s.Tail[i]
		whole += s.Tail[i]
	}
	return fmt.Sprintf("The p99 is %s. Requests around it took %s each, %s.",
		workload.Briefly(s.Whole.P99), workload.Briefly(whole), servedList(parts, alone(s)))
}

// slowest says what the slowest requests wait for, or "" if they are not slow.
func slowest(s *sample.Served) string {
	n := len(s.Slowest)
	if n == 0 || s.Slowest[0].Whole < slow*s.Whole.P50 {
		return ""
	}
	means := make([]sample.ServedPart, len(s.Parts))
	whole := 0.0
	for i, p := range s.Parts {
		means[i].Part = p.Part
		for _, x := range s.Slowest {
			means[i].Mean += x.Parts[i] / float64(n)
		}
		whole += means[i].Mean
	}
	if n == 1 {
		return fmt.Sprintf("The slowest took %s, %s.", workload.Briefly(whole),
			servedList(means, alone(s)))
	}
	return fmt.Sprintf("The slowest %d took %s each, %s.", n, workload.Briefly(whole),
		servedList(means, alone(s)))
}

// servedList lists the parts whose mean matters, the largest first.
func servedList(parts []sample.ServedPart, alone bool) string {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b sample.ServedPart) int {
		return cmp.Compare(b.Mean, a.Mean)
	})
	whole := 0.0
	for _, p := range parts {
		whole += p.Mean
	}
	var out []string
	for _, p := range parts {
		if p.Mean >= LittleShare*whole {
			out = append(out, servedWords(p.Part, alone)+" "+workload.Briefly(p.Mean))
		}
	}
	return strings.Join(out, ", ")
}

func servedWords(part string, alone bool) string {
	switch part {
	case sample.EvidenceServer:
		if !alone {
			return "the server with its TCP"
		}
		return "the server"
	case sample.EvidenceTCP:
		return "its TCP"
	case sample.EvidenceQueue:
		return "its device's queue"
	case sample.ServedRequest:
		return "receiving the request"
	case sample.ServedCPU:
		return "waiting for a CPU"
	}
	return "sending the reply"
}

// DNSErrors lists replies of DNS with an error by their number: "12 SERVFAIL, 1 REFUSED".
func DNSErrors[N int | float64](codes map[string]N) string {
	names := slices.SortedFunc(maps.Keys(codes), func(a, b string) int {
		return cmp.Or(cmp.Compare(codes[b], codes[a]), strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%.0f %s", float64(codes[name]), name)
	}
	return strings.Join(names, ", ")
}

// incomplete says what was not seen, or "".
func incomplete(s *sample.Served) string {
	var say []string
	if s.Lost > 0 {
		say = append(say, fmt.Sprintf("the capture lost %d %s: the figures are of the others", s.Lost,
			units.Agree(s.Lost, "packet or write", "packets or writes")))
	}
	if s.ClockSet > 0 {
		say = append(say, "the clock was set: the requests of about a second are left out")
	}
	few := s.Requests / 100
	switch {
	case s.Unmatched > few && s.UDP:
		say = append(say, fmt.Sprintf("%d %s could not be paired, or it was not seen when the reply was "+
			"sent", s.Unmatched, units.Agree(s.Unmatched, "request or reply", "requests or replies")))
	case s.Unmatched > few:
		say = append(say, fmt.Sprintf("%s could not be divided, because packets or writes were not "+
			"seen, or the reply began before the request's end", units.Plural(s.Unmatched, "request")))
	}
	if s.UDP {
		few = 0
	}
	if s.Unanswered > few {
		when := " at the end"
		switch {
		case s.UDP:
			when = " by the end"
		case s.Spells > 0:
			when = " at the end of the spell in which they came"
		}
		say = append(say, units.Plural(s.Unanswered, "request")+" had no reply"+when)
	}
	if errors := DNSErrors(s.Errors); errors != "" {
		say = append(say, "replies were errors, whose time counts: "+errors)
	}
	if s.Successor != nil {
		say = append(say, succeeded(s.Server, *s.Successor))
	}
	if s.TwoWay > 0 {
		say = append(say, units.Plural(s.TwoWay, "connection")+units.Agree(s.TwoWay, " was", " were")+
			" left out, on which both sides send messages that answer nothing, as in AMQP, MQTT, NATS, "+
			"QUIC, SSH, WebSocket, WireGuard, publish/subscribe and replication")
	}
	if !s.Writes && s.Requests > 0 && s.UDP {
		say = append(say, "when the server sent its replies could not be read, so its device's queue "+
			"is in its part")
	} else if !s.Writes && s.Requests > 0 {
		say = append(say, "the server's writes could not be read, so its TCP and its device's queue "+
			"are in its part")
	}
	if len(say) == 0 {
		return ""
	}
	return printable.Capital(strings.Join(say, "; ")) + "."
}
