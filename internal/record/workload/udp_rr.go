package workload

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// UDPRR is request and response in datagrams.
const UDPRR = "udp-rr"

var udpRR = Workload{
	About: "Request and response in datagrams, one after another: DNS.",
	Name:  UDPRR,
	Gist:  "request/response in datagrams",
	UDP:   true,
	Flags: []Flag{requestFlag(1, ownMessages), replyFlag(1, ownMessages)},
	fill:  fillMessages,
	time:  udpRRTime, check: udpRRCheck, notSliced: sliced,
	Primary: LatencyP50, Noun: "median latency", apart: "median UDP latency", Rate: Transactions, Trips: true,
	words:   udpRRWords,
	figures: (*Figures).udpTrips, work: roundTrips,
}

func udpRRTime(l *sample.Load, w sample.Wire) { l.Warmup = usualWarmup(w) }

func udpRRCheck(l sample.Load) error {
	m := MessagesOf(l)
	if max(m.Request, m.Reply) > MaxDatagram {
		return &OptionError{fmt.Sprintf("udp-rr: a datagram holds at most %d bytes", MaxDatagram),
			"a smaller --request or --reply, or --load rr"}
	}
	return nil
}

func udpRRWords(l sample.Load) string { return "udp-" + rrWords(l) }

func (f *Figures) udpTrips(v sample.Visit, _ sample.Load) {
	f.roundTrips(v)
	lost := float64(v.Client.Counts[CountLost])
	answered, ok := v.Client.Counts[CountAnswered]
	if !ok { // older files
		answered = v.Client.Trips
	}
	f.set(Loss, lost/(lost+float64(answered)))
}
