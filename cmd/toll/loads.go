package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

// loadFlags are the flags of the loads.
type loadFlags struct {
	kinds          []string
	streams        int
	reverse        bool
	request, reply int
	queries        int
	given          func(flag string) bool // by the user
	options        optionFlags
	nodelay        string
	stream         streamFlags
	udp            udpFlags
}

// loadKind is a load on the command line.
type loadKind struct {
	what string // in a few words
	// load makes it of the flags, with its warm-up over the wire, and its window if
	// that must be longer than others'.
	load func(f *loadFlags, w sample.Wire) sample.Load
}

// loadNames are the loads in the order in which they are listed.
var loadNames = []string{"bulk", "rr", "crr", "udp", "udp-rr", "stream", "query"}

var loadKinds = map[string]loadKind{
	"bulk":   {"TCP stream", bulkLoad},
	"rr":     {"request/response", rrLoad},
	"query":  {"a chatty application", queryLoad},
	"stream": {"LLM token streaming", streamLoad},
	"crr":    {"connect, request, response, close", crrLoad},

	"udp":    {"datagrams", udpLoad},
	"udp-rr": {"request/response in datagrams", udpRRLoad},
}

// addLoads adds the flags of the loads, of which those in kinds are the default.
func (f *runFlags) addLoads(fl *pflag.FlagSet, kinds ...string) {
	var words []string
	for _, n := range loadNames {
		words = append(words, n+" ("+loadKinds[n].what+")")
	}
	fl.StringSliceVar(&f.loads.kinds, "load", kinds, "the traffic: "+strings.Join(words, ", "))
	fl.IntVar(&f.loads.streams, "streams", 1, "bulk, udp: connections, flows")
	fl.BoolVar(&f.loads.reverse, "reverse", false, "bulk: from the server to the client")
	fl.IntVar(&f.loads.request, "request", 1, "rr, crr, udp-rr, query: bytes of a request (default of query 100)")
	fl.IntVar(&f.loads.reply, "reply", 1, "rr, crr, udp-rr, query: bytes of a reply (default of query 1024)")
	fl.IntVar(&f.loads.queries, "queries", 20, "query: queries of a page")
	f.loads.given = fl.Changed
	f.loads.options.add(fl)
	f.loads.stream.add(fl)
	fl.StringVar(&f.loads.nodelay, "nodelay", "", "TCP_NODELAY on both ends: on or off (default on for rr and stream)")
	f.loads.udp.add(fl)
}

// Bounds of what the flags take.
const (
	maxStreams = 256
	maxBytes   = 64 << 20
	maxQueries = 10_000
)

// loadsWith are the loads that a flag is for; the flags' help says the same.
var loadsWith = map[string][]string{
	"streams": {"bulk", "udp"}, "reverse": {"bulk"}, "write-size": {"bulk"}, "bidir": {"bulk"}, "bytes": {"bulk"}, "send": {"bulk"},
	"request": {"rr", "crr", "udp-rr", "query"}, "reply": {"rr", "crr", "udp-rr", "query"}, "queries": {"query"},
	"connections": {"rr", "crr"}, "rate": {"rr"}, "under-load": {"rr"},
	"sessions": {"stream"}, "tokens": {"stream"}, "tokens-per-second": {"stream"},
	"bitrate": {"udp"}, "datagram": {"udp"}, "batch": {"udp"}, "gso": {"udp"},
	"nodelay": {"bulk", "rr", "crr", "stream", "query"},
}

// idle refuses flags that the user gave and that none of the loads has.
func (f *loadFlags) idle() error {
	for _, flag := range slices.Sorted(maps.Keys(loadsWith)) {
		loads := loadsWith[flag]
		has := func(kind string) bool { return slices.Contains(loads, kind) }
		if f.given == nil || !f.given(flag) || slices.ContainsFunc(f.kinds, has) || flag == "write-size" && f.options.underLoad {
			continue
		}
		return usage(fmt.Errorf("--%s is for %s; the loads here are: %s", flag, strings.Join(loads, ", "), strings.Join(f.kinds, ", ")),
			"leave --"+flag+" out, or add --load "+loads[0])
	}
	return nil
}

func (f *loadFlags) check() error {
	for _, n := range []struct {
		flag       string
		value, top int
	}{{"streams", f.streams, maxStreams}, {"request", f.request, maxBytes}, {"reply", f.reply, maxBytes}, {"queries", f.queries, maxQueries}} {
		if n.value < 1 || n.value > n.top {
			return usage(fmt.Errorf("--%s %d: must be from 1 to %d", n.flag, n.value, n.top), "")
		}
	}
	if err := f.idle(); err != nil {
		return err
	}
	if err := f.options.check(f.reverse); err != nil {
		return err
	}
	if f.nodelay != "" {
		if _, err := parseOne(f.nodelay, parseNodelay); err != nil {
			return err
		}
	}
	if err := f.stream.check(f.kinds); err != nil {
		return err
	}
	return f.checkUDP()
}

// bulkWarmup is past slow start.
func bulkWarmup(w sample.Wire) float64 { return 0.1 + slowStart*w.RoundTrip() }

func bulkLoad(f *loadFlags, w sample.Wire) sample.Load {
	return f.options.bulk(sample.Load{Warmup: bulkWarmup(w), Streams: f.streams, Reverse: f.reverse})
}

func rrLoad(f *loadFlags, w sample.Wire) sample.Load {
	return f.options.rr(sample.Load{Warmup: 0.05 + settled*w.RoundTrip(), Request: f.request, Reply: f.reply}, w)
}

// queryLoad has the sizes of small SQL queries and their answers.
func queryLoad(f *loadFlags, w sample.Wire) sample.Load {
	page := float64(f.queries) * w.RoundTrip()
	l := sample.Load{Warmup: 0.05 + page, Window: measured * page, Request: 100, Reply: 1024, Queries: f.queries}
	if f.given("request") {
		l.Request = f.request
	}
	if f.given("reply") {
		l.Reply = f.reply
	}
	return l
}

// only refuses loads of which a command makes nothing.
func only(r plan.Request, command string, loads ...string) error {
	for _, l := range r.Loads {
		if !slices.Contains(loads, l.Kind) {
			return usage(fmt.Errorf("toll %s has no load %s", command, l.Kind),
				fmt.Sprintf("toll compare --load %s, or toll %s --load %s", l.Kind, command, strings.Join(loads, ",")))
		}
	}
	return nil
}
