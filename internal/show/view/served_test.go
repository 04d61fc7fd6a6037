package view

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

const us = 1e-6

// always returns a part of which all statistics have one value.
func always(part string, x float64) sample.ServedPart {
	return sample.ServedPart{Part: part, Mean: x * us, P50: x * us, P99: x * us, Max: x * us}
}

// busyServer returns requests whose slowest one waits for an acknowledgement.
func busyServer() sample.Served {
	return sample.Served{Server: sample.EvidenceHop{Process: "postgres", Port: 5432}, Elapsed: 10.1,
		Followed: 10, Requests: 88_700,
		Connections: 4, Writes: true,
		Whole: sample.ServedPart{Mean: 130 * us, P50: 80 * us, P99: 1120 * us, Max: 41_000 * us},
		Parts: []sample.ServedPart{{Part: sample.ServedRequest},
			{Part: sample.EvidenceServer, Mean: 90 * us, P50: 78 * us, P99: 1117 * us,
				Max: 6000 * us},
			{Part: sample.EvidenceTCP, Mean: 39 * us, P50: 1 * us, P99: 5 * us, Max: 40_000 * us},
			{Part: sample.EvidenceQueue, Mean: 1 * us, P50: us, P99: us, Max: us},
			{Part: sample.ServedReply}},
		Waits: []sample.EvidenceWait{{Cause: sample.WaitNagle, Tokens: 8870, Sum: 354.8}},
		Tail:  []float64{0, 1100 * us, 19 * us, us, 0},
		Slowest: []sample.Answered{{At: 1.25, Whole: 41_000 * us,
			Parts:  []float64{0, 999 * us, 40_000 * us, us, 0},
			Client: &[2]float64{5 * us, 10 * us}}},
		Median: &sample.Answered{At: 3, Whole: 80 * us, Parts: []float64{0, 78 * us, us, us, 0}},
		Client: &sample.ServedClient{Requests: 88_000, Whole: always("", 145),
			Parts: []sample.ServedPart{always(sample.ServedSent, 5), always(sample.ServedHere, 130),
				always(sample.ServedRead, 10)}, Between: always(sample.ServedBetween, 7)}}
}

func TestServed(t *testing.T) {
	busy := busyServer()
	server, lossy := busy.Server, busy
	lossy.Client = nil
	lossy.Writes, lossy.Lost, lossy.Unmatched, lossy.Waits = false, 12, 1000, nil
	lossy.Parts = []sample.ServedPart{busy.Parts[0], busy.Parts[1], busy.Parts[4]}
	lossy.Median, lossy.Tail, lossy.Slowest = nil, nil,
		[]sample.Answered{{At: 1.25, Whole: 200 * us, Parts: []float64{0, 200 * us, 0}}}
	sampled := lossy
	lossy.ClockSet = 1
	sampled.Followed, sampled.Spells, sampled.Lost, sampled.Unmatched = 1.2, 12, 0, 0
	sampled.Writes, sampled.Unanswered, sampled.Requests = true, 1000, 88_700/8
	sampled.Dialled, sampled.Estimated = []uint16{5432, 6432}, 60_600
	slowed := sampled
	slowed.Writes, slowed.Unanswered, slowed.Slowest = false, 0, nil
	slowed.Pace = []float64{0.7, 0.72, 0.75, 0.76, 0.77, 0.78, 0.8}
	names := sample.Served{Server: sample.EvidenceHop{Process: "dnsmasq", Port: 53}, UDP: true,
		Elapsed: 10, Followed: 10, Requests: 4000, Connections: 3990, Unmatched: 50, Unanswered: 3,
		Errors: map[string]int{"SERVFAIL": 2, "REFUSED": 40},
		Whole:  sample.ServedPart{Mean: 90 * us, P50: 80 * us, P99: 120 * us, Max: 150 * us},
		Parts: []sample.ServedPart{{Part: sample.ServedRequest}, {Part: sample.EvidenceServer,
			Mean: 90 * us, P50: 80 * us, P99: 120 * us, Max: 150 * us}, {Part: sample.ServedReply}},
		Slowest: []sample.Answered{{At: 1.25, Whole: 150 * us, Parts: []float64{0, 150 * us, 0}}},
		Client: &sample.ServedClient{Requests: 4000, Whole: always("", 140),
			Parts: []sample.ServedPart{always(sample.ServedSent, 20), always(sample.ServedHere, 90),
				always(sample.ServedRead, 30)}}}
	for name, c := range map[string]struct {
		s    sample.Served
		want string
	}{
		"none": {sample.Served{Server: server, Elapsed: 2}, `Where does the time of requests to postgres at port 5432 go?
  No request was answered in 2 s.
`},
		"messages": {sample.Served{Server: server, Elapsed: 2, Open: new(0), TwoWay: 1}, `Where does the time of requests to postgres at port 5432 go?
  No request was answered in 2 s.
  1 connection was left out, on which both sides send messages that answer nothing, as in AMQP,
    MQTT, NATS, QUIC, SSH, WebSocket, WireGuard, publish/subscribe and replication.
`},
		"ended": {sample.Served{Server: server, Elapsed: 2, Open: new(0),
			Successor: &sample.EvidenceHop{}}, `Where does the time of requests to postgres at port 5432 go?
  No request was answered in 2 s.
  While it was watched, postgres stopped listening, so that the requests a second are of a part of
    the time.
`},
		"succeeded by somebody": {sample.Served{Server: server, Elapsed: 2, Open: new(0),
			Successor: &sample.EvidenceHop{Port: 5432}}, `Where does the time of requests to postgres at port 5432 go?
  No request was answered in 2 s.
  While it was watched, postgres stopped listening, and a program that toll cannot see listens there
    now: the requests to both count.
`},
		"restarted": {sample.Served{Server: server, Elapsed: 2, Open: new(0),
			Successor: &sample.EvidenceHop{Process: "postgres", Port: 5432}}, `Where does the time of requests to postgres at port 5432 go?
  No request was answered in 2 s.
  While it was watched, postgres was restarted: the requests to both processes count.
`},
		"succeeded": {sample.Served{Server: server, Elapsed: 2, Open: new(0), TwoWay: 1,
			Successor: &sample.EvidenceHop{Process: "pgbouncer", Port: 5432}}, `Where does the time of requests to postgres at port 5432 go?
  No request was answered in 2 s.
  While it was watched, postgres stopped listening, and pgbouncer listens there now: the requests to
    both count; 1 connection was left out, on which both sides send messages that answer nothing, as
    in AMQP, MQTT, NATS, QUIC, SSH, WebSocket, WireGuard, publish/subscribe and replication.
`},
		"idle": {sample.Served{Server: server, Elapsed: 2, Open: new(500)}, `Where does the time of requests to postgres at port 5432 go?
  No request was answered in 2 s: 500 connections are open, and none carried any.
`},
		"unconnected": {sample.Served{Server: server, Elapsed: 2, Open: new(0)}, `Where does the time of requests to postgres at port 5432 go?
  No request was answered in 2 s: nobody is connected. A longer --budget may see clients that come
    for each request.
`},
		"busy": {busy, `Where does the time of requests to postgres at port 5432 go?
  88700 requests over 4 connections in 10 s, 8870 a second: 130 µs each at the server's network
    device, the server 90.0 µs, its TCP 39.0 µs.
  The clients of 88000 of them, on this machine, had 145 µs each from write to read: 5.00 µs until
    the request was at the server's device, 10.0 µs from the reply's departure until it was read;
    the next one followed after 7.00 µs.
  The p99 is 1.12 ms. Requests around it took 1.12 ms each, the server 1.10 ms.
  The slowest took 41.0 ms, its TCP 40.0 ms.
  8870 replies waited 40.0 ms each at the server for acknowledgements, without TCP_NODELAY (set it
    at the server).

                         mean   p50   p99  largest
  part                     µs    µs    µs       µs
  server                 90.0  78.0  1117     6000
  its TCP                39.0  1.00  5.00    40000
  its queue              1.00  1.00  1.00     1.00
  request                 130  80.0  1120    41000
  to the server          5.00  5.00  5.00     5.00
  at the server           130   130   130      130
  back until read        10.0  10.0  10.0     10.0
  request at the client   145   145   145      145
  until the next one     7.00  7.00  7.00     7.00

The slowest requests
     came  whole  server  its TCP  its queue
  after s     µs      µs       µs         µs
     1.25  41000     999    40000       1.00
`},
		"lossy": {lossy, `Where does the time of requests to postgres at port 5432 go?
  88700 requests over 4 connections in 10 s, 8870 a second: 130 µs each at the server's network
    device, the server with its TCP 90.0 µs.
  The clients, and what is between them and that device, are not in it: what clients do could not be
    recorded (that needs BPF, and Linux 6.16 or an earlier one with
    CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS).
  The capture lost 12 packets or writes: the figures are of the others; the clock was set: the
    requests of about a second are left out; 1000 requests could not be divided, because packets or
    writes were not seen, or the reply began before the request's end; the server's writes could not
    be read, so its TCP and its device's queue are in its part.

           mean   p50   p99  largest
  part       µs    µs    µs       µs
  server   90.0  78.0  1117     6000
  request   130  80.0  1120    41000

The slowest requests
     came  whole  server
  after s     µs      µs
     1.25    200     200
`},
		"UDP": {names, `Where does the time of requests to dnsmasq at port 53 go?
  4000 requests over UDP from 3990 client ports in 10 s, 400 a second: 90.0 µs each at the server's
    network device, the server 90.0 µs.
  Their clients, on this machine, had 140 µs each from their device to read: 20.0 µs until the
    request was at the server's device, 30.0 µs from the reply's departure until it was read.
  50 requests or replies could not be paired, or it was not seen when the reply was sent; 3 requests
    had no reply by the end; replies were errors, whose time counts: 40 REFUSED, 2 SERVFAIL; when
    the server sent its replies could not be read, so its device's queue is in its part.

                         mean   p50   p99  largest
  part                     µs    µs    µs       µs
  server                 90.0  80.0   120      150
  request                90.0  80.0   120      150
  to the server          20.0  20.0  20.0     20.0
  at the server          90.0  90.0  90.0     90.0
  back until read        30.0  30.0  30.0     30.0
  request at the client   140   140   140      140

The slowest requests
     came  whole  server
  after s     µs      µs
     1.25    150     150
`},
		"slowed": {slowed, `Where does the time of requests to postgres at port 5432 go?
  11087 requests over 4 connections in 1.2 s, of about 6000 a second, followed in 12 spells, 12 % of
    10.1 s: 130 µs each at the server's network device, the server with its TCP 90.0 µs.
  The clients, and what is between them and that device, are not in it: no program of this machine
    that dials port 5432 or 6432 was seen to send the requests and read the replies.
  Following slowed it: in the spells it sent 24 % (22 to 28) less a second than between them.
    Without toll, requests that wait for others take that much less time.
  The server's writes could not be read, so its TCP and its device's queue are in its part.

           mean   p50   p99  largest
  part       µs    µs    µs       µs
  server   90.0  78.0  1117     6000
  request   130  80.0  1120    41000

The slowest requests
     came  whole  server
  after s     µs      µs
`},
		"sampled": {sampled, `Where does the time of requests to postgres at port 5432 go?
  11087 requests over 4 connections in 1.2 s, of about 6000 a second, followed in 12 spells, 12 % of
    10.1 s, so that the server loses little: 130 µs each at the server's network device, the server
    90.0 µs.
  The clients, and what is between them and that device, are not in it: no program of this machine
    that dials port 5432 or 6432 was seen to send the requests and read the replies.
  1000 requests had no reply at the end of the spell in which they came.

           mean   p50   p99  largest
  part       µs    µs    µs       µs
  server   90.0  78.0  1117     6000
  request   130  80.0  1120    41000

The slowest requests
     came  whole  server
  after s     µs      µs
     1.25    200     200
`},
	} {
		if got := written(t, "table", Served(&c.s), format.Options{}); got != c.want {
			t.Errorf("%s:\n%s", name, got)
		}
		for _, f := range []string{"json", "markdown", "html", "csv"} {
			if written(t, f, Served(&c.s), format.Options{}) == "" {
				t.Errorf("%s: nothing is written as %s", name, f)
			}
		}
	}
}

// TestServedPage draws the median request and the slowest one, and says who watched where and when.
func TestServedPage(t *testing.T) {
	s := busyServer()
	s.Started = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	s.Command = []string{"trace", "--attach", "5432"}
	s.Environment = sample.Environment{Host: "db1", Kernel: "6.18"}
	p := Served(&s).Page()
	if p.Command != "toll trace --attach 5432" || p.Lede != "2026-03-04 05:06 UTC · on db1" {
		t.Errorf("headed %q, %q", p.Command, p.Lede)
	}
	rows := p.Groups[0].Charts[0].Table.Rows
	var got []string
	for _, r := range rows {
		for _, c := range r.Cells {
			got = append(got, c.Text)
		}
	}
	want := strings.Split("the median|server|0.000 ms|0.078 ms|"+
		"the median|its TCP|0.078 ms|0.001 ms|the median|its queue|0.079 ms|0.001 ms|"+
		"the slowest|to the server|0.000 ms|0.005 ms|the slowest|server|0.005 ms|0.999 ms|"+
		"the slowest|its TCP|1.00 ms|40.0 ms|the slowest|its queue|41.0 ms|0.001 ms|"+
		"the slowest|back until read|41.0 ms|0.010 ms", "|")
	if !slices.Equal(got, want) {
		t.Errorf("bars: %q", got)
	}
	s.Median = nil
	if p := Served(&s).Page(); len(p.Groups) != 0 {
		t.Errorf("without a median request: %v", p.Groups)
	}
}

// TestServedCounts has numbers of which each is none, one or two.
func TestServedCounts(t *testing.T) {
	const nouns = "(request|connection|client port|spell|exchange|packet|write|reply|replie)"
	wrong := regexp.MustCompile(`\b1 ` + nouns + `(s\b|( \w+)* (are|were|have)\b)|\b[02] ` + nouns +
		`( \w+)* (is|was|has|counts)\b|\b[02] ` + nouns + `\b`)
	for n := range 3 {
		for _, udp := range []bool{false, true} {
			s := sample.Served{Whole: sample.ServedPart{Mean: 1e-3}}
			s.UDP, s.Requests, s.Connections, s.Pipelined, s.Together, s.Unread = udp, n, n, n, n, n
			s.Unmatched, s.Unanswered, s.Lost, s.Spells = n, n, n, n
			s.Elapsed, s.Followed = 3, 3
			text := strings.Join(endpoints.ServedAnswer(&s).Text, " ")
			if x := wrong.FindString(text); x != "" {
				t.Errorf("%q in: %s", x, text)
			}
		}
	}
}
