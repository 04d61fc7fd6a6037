package truth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	tokenFirst  = 30 * time.Millisecond
	tokenPace   = 120 * time.Millisecond // more than two round trips
	tokensEach  = 6
	serverLimit = 0.2e-3 // s; how far the server's part may be from the planted amount
	tokenLimit  = 0.5e-3 // any other part
	serverAt    = 7001
	relayAt     = 7002
	discardAt   = 7009
	queueRate   = 20e6 // bit/s
	queueBurst  = 2000 // bytes
)

// plantedToken delays each token in one part of its time.
type plantedToken struct {
	part string
	// says is what the report must name for an amount of half of the first token's time or more.
	says string
	by   func(*tokenWorld, time.Duration) error
	// moves has the parts that move, and by which multiple of the amount.
	moves map[string]float64
}

var plantedTokens = []plantedToken{
	{sample.EvidenceServer, "neither", func(w *tokenWorld, d time.Duration) error {
		w.late.Store(int64(d))
		return nil
	}, map[string]float64{sample.EvidenceServer: 1}},
	{sample.EvidenceTCP, "the server's TCP, without TCP_NODELAY",
		func(w *tokenWorld, d time.Duration) error {
			w.nagle.Store(true)
			w.forth.Store(int64(d / 2))
			w.back.Store(int64(d / 2))
			return inside(w.client, "ip", "route", "change", "10.9.0.0/24", "dev", tunName,
				"quickack", "1")
		}, map[string]float64{sample.EvidenceTCP: 1, sample.EvidenceWire: 0.5,
			sample.EvidenceRequest: 0.5}},
	{sample.EvidenceQueue, "the queue of the server's network device",
		func(w *tokenWorld, d time.Duration) error {
			w.filler.Store(int64(queueBurst + (d+ahead).Seconds()*queueRate/8))
			for i := range w.others {
				err := w.server.Do(func() (err error) {
					w.others[i], err = net.ListenPacket("udp4", ":0")
					return err
				})
				if err != nil {
					return err
				}
				w.closers = append(w.closers, w.others[i].Close)
			}
			return inside(w.server, "tc", "qdisc", "replace", "dev", tunName, "root", "tbf",
				"rate", strconv.Itoa(queueRate), "burst", strconv.Itoa(queueBurst), "limit",
				"1000000")
		}, map[string]float64{sample.EvidenceQueue: 1}},
	{sample.EvidenceRelay, "the relay measure at port " + strconv.Itoa(relayAt),
		func(w *tokenWorld, d time.Duration) error {
			w.held.Store(int64(d))
			return nil
		}, map[string]float64{sample.EvidenceRelay: 1}},
	{sample.EvidenceWire, "the network", func(w *tokenWorld, d time.Duration) error {
		w.back.Store(int64(d))
		return nil
	}, map[string]float64{sample.EvidenceWire: 1}},
	{sample.EvidenceClient, "the client", func(w *tokenWorld, d time.Duration) error {
		w.stopped.Store(int64(d))
		return nil
	}, map[string]float64{sample.EvidenceClient: 1}},
}

var tokenAmounts = []time.Duration{500 * time.Microsecond, 5 * time.Millisecond,
	50 * time.Millisecond}

// tokens shows that toll stream finds, and sizes, what delays tokens.
func (t *trial) tokens(ctx context.Context) (_ []table, err error) {
	out := table{title: "Tokens: planted delays",
		text: fmt.Sprintf("`toll stream` to a server in another network namespace, %d responses "+
			"of %d tokens, against the same without the delay. A row holds if each part of the "+
			"time to the last token moves as planted, the median over rounds, within %.1f ms, the "+
			"server's within %.1f ms; and if the report names the part for 50 ms, but the server, "+
			"whose work any response is. What the relay adds is measured against a relay that "+
			"does not wait. The server's TCP waits for an acknowledgement (Nagle), for one round "+
			"trip, half of which is in the request and half in the "+
			"wire.", t.scale.tokens, tokensEach, 1e3*tokenLimit,
			1e3*serverLimit),
		head: []string{"planted", "amount", "the part moved by", "the farthest other", "named"}}
	before := map[int]*tokenReport{} // by the port dialled
	for _, p := range plantedTokens {
		for _, d := range tokenAmounts {
			port := serverAt
			if p.part == sample.EvidenceRelay {
				port = relayAt
			}
			if before[port] == nil {
				if before[port], err = t.stream(ctx, port, plantedToken{}, 0); err != nil {
					return nil, err
				}
			}
			after, err := t.stream(ctx, port, p, d)
			if ctx.Err() != nil {
				return nil, err
			}
			if err != nil {
				t.say("tokens: %s, %s: %v", p.part, d, err)
				out.add(no, p.part, d.String(), err.Error(), "", "")
				continue
			}
			p.judge(&out, before[port], after, d)
		}
	}
	exact, err := t.instants(ctx)
	return []table{out, exact}, err
}

type tokenReport struct {
	Cells []struct {
		Evidence *sample.Evidence
	}
	Findings []string
	visits   []sample.Visit
}

// last returns the times to the last token by part: the median over rounds. In a mean of few
// responses one pause of the machine, in what is planted too, is as large as the smallest amount.
func (r *tokenReport) last() map[string]float64 {
	all := map[string][]float64{}
	for _, v := range r.visits {
		sums := map[string]float64{}
		for _, p := range v.Evidence.Parts {
			sums[p.Part] += p.Last
		}
		for part, x := range sums {
			all[part] = append(all[part], x)
		}
	}
	out := map[string]float64{}
	for part, xs := range all {
		slices.Sort(xs)
		out[part] = (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
	}
	return out
}

// named returns what the report names.
func (r *tokenReport) named() string {
	for _, f := range r.Findings {
		if name, ok := strings.CutPrefix(f, "r: "); ok {
			return strings.TrimSuffix(name, ".")
		}
	}
	return ""
}

func (p plantedToken) judge(out *table, before, after *tokenReport, d time.Duration) {
	was, is := before.last(), after.last()
	v, other, farthest := yes, "", 0.0
	for part, x := range is {
		limit, off := tokenLimit, x-was[part]-p.moves[part]*d.Seconds()
		if part == sample.EvidenceServer {
			limit = serverLimit
		}
		if math.Abs(off) > limit {
			v = no
		}
		if part != p.part && math.Abs(off) >= math.Abs(farthest) {
			other, farthest = part, off
		}
	}
	name := after.named()
	if want := p.says; d == slices.Max(tokenAmounts) && name != want {
		v = no
	}
	out.add(v, p.part, d.String(), fmt.Sprintf("%+.3f ms", 1e3*(is[p.part]-was[p.part])),
		fmt.Sprintf("%s %+.3f ms", other, 1e3*farthest), name)
}

// tokenWorld is a client's and a server's namespace, and what delays tokens between them.
type tokenWorld struct {
	spaces
	client, server *netns.NS
	held, late     atomic.Int64 // ns: in the relay, in the server
	forth, back    atomic.Int64 // on the wire
	stopped        atomic.Int64
	filler         atomic.Int64      // bytes that others send before each token
	others         [2]net.PacketConn // whose, so that no socket's buffer is full
	nagle          atomic.Bool
	toll           atomic.Int64  // the client's process
	logs           logs          // of each response of the servers that log
	dialled        chan net.Conn // to the server, for the relay
	ended          chan struct{}
}

// stream returns toll's report of a server at a port, with a delay planted.
func (t *trial) stream(ctx context.Context, port int, p plantedToken, d time.Duration) (
	r *tokenReport, err error) {
	w, err := newTokenWorld()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if p.by != nil {
		if err := p.by(w, d); err != nil {
			return nil, err
		}
	}
	return t.streamIn(ctx, w, port, "--tokens", strconv.Itoa(tokensEach), "--requests", "2", "--rounds",
		strconv.Itoa(t.scale.tokens/2))
}

// streamIn returns what toll reports of a server at a port, from the client's namespace.
func (t *trial) streamIn(ctx context.Context, w *tokenWorld, port int, args ...string) (
	r *tokenReport, err error) {
	dir, err := os.MkdirTemp("", "truth-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "results")
	cmd := t.command(ctx, append([]string{"stream", "r=http://10.9.0.2:" + strconv.Itoa(port), "--model",
		"m", "--save", file, "--format", "json", "--quiet", "--force"}, args...)...)
	if err := w.client.Start(cmd.Cmd); err != nil {
		return nil, err
	}
	w.toll.Store(int64(cmd.Process.Pid))
	err = cmd.Wait()
	w.toll.Store(0)
	if err := cmd.failed(err); err != nil {
		return nil, err
	}
	r = &tokenReport{}
	if err := json.Unmarshal(cmd.stdout.Bytes(), r); err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	if len(r.Cells) != 1 || r.Cells[0].Evidence == nil {
		return nil, fmt.Errorf("no evidence: %s", strings.Join(r.Findings, " "))
	}
	if why, ok := r.Cells[0].Evidence.Clear(); !ok {
		return nil, errors.New(why)
	}
	r.visits, err = visitsOf(file)
	return r, err
}

// visitsOf returns the visits in a results file that have evidence.
func visitsOf(file string) ([]sample.Visit, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f, err := sample.Read(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(f.Visits, func(v sample.Visit) bool { return v.Evidence == nil }), nil
}

// newTokenWorld runs a server at 10.9.0.2, and a relay in front of it.
func newTokenWorld() (w *tokenWorld, err error) {
	w = &tokenWorld{dialled: make(chan net.Conn), ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	for _, ns := range []**netns.NS{&w.client, &w.server} {
		if *ns, err = w.namespace(); err != nil {
			return nil, err
		}
	}
	if err := w.wire(); err != nil {
		return nil, err
	}
	for port, serve := range map[int]func(*net.TCPConn){serverAt: w.serve, relayAt: w.relay,
		instantAt: w.serveLogged, instantRelayAt: w.relayLogged} {
		if err := w.listen(port, serve); err != nil {
			return nil, err
		}
	}
	w.closers = append(w.closers, func() error { close(w.ended); return nil })
	go w.dialAhead()
	return w, nil
}

// listen calls serve with each connection to a port of the server's namespace.
func (w *tokenWorld) listen(port int, serve func(*net.TCPConn)) error {
	var l net.Listener
	err := w.server.Do(func() (err error) {
		l, err = net.Listen("tcp4", ":"+strconv.Itoa(port))
		return err
	})
	if err != nil {
		return err
	}
	w.closers = append(w.closers, l.Close)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			}()
		}
	}()
	return nil
}

// dialAhead keeps a connection to the server open for the relay. A relay that dials when it has a
// client holds the first request for as long: that is the relay's, but not planted.
func (w *tokenWorld) dialAhead() {
	for {
		var server net.Conn
		err := w.server.Do(func() (err error) {
			server, err = net.Dial("tcp4", "127.0.0.1:"+strconv.Itoa(serverAt))
			return err
		})
		if err != nil {
			return
		}
		select {
		case w.dialled <- server:
		case <-w.ended:
			server.Close()
			return
		}
	}
}

// relay copies what the server sends, after a time.
func (w *tokenWorld) relay(client *net.TCPConn) {
	var server net.Conn
	select {
	case server = <-w.dialled:
	case <-w.ended:
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	for b := make([]byte, 1<<16); ; {
		n, err := server.Read(b)
		if err != nil {
			return
		}
		waitUntil(time.Now().Add(time.Duration(w.held.Load())))
		if _, err := client.Write(b[:n]); err != nil {
			return
		}
	}
}
