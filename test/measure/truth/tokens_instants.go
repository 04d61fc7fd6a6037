package truth

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	instantAt      = 7004
	instantRelayAt = 7005
	instantTokens  = 8
	instantPace    = 10 * time.Millisecond
	// How far an instant of a token may be from its program's log at the 99th percentile, in s.
	wroteLimit = 0.2e-3
	leftLimit  = 0.5e-3
)

// logs has what the server and the relay noted of each response, in order.
type logs struct {
	came    atomic.Int64 // ns, when the last request was given to the server's device
	mu      sync.Mutex
	wrote   [][]int64 // ns before the server wrote each token, from when its request came on
	relayed [][]int64 // the same of the relay
}

// instants shows how far the instants that toll has of tokens are from the programs' own logs.
func (t *trial) instants(ctx context.Context) (_ table, err error) {
	n := t.scale.instants
	out := table{title: "Tokens: each one's instants",
		text: fmt.Sprintf("`toll stream` to a server, and over a relay that copies what it sends, with "+
			"%d responses of %d tokens each. Each instant is compared with its program's log, both "+
			"from when the request came to the device of the port that toll dials. A row holds if "+
			"99 %% of the tokens are as near as the limit. Of what left the relay, a results file "+
			"has the last token of a response.", n, instantTokens),
		head: []string{"instant", "over", "tokens", "p50", "p99", "limit"}}
	add := func(what, over string, errs []float64, limit float64) {
		far := p99(errs)
		ms := func(x float64) string { return fmt.Sprintf("%.3f ms", 1e3*x) }
		out.add(holdsIf(far <= limit), what, over, strconv.Itoa(len(errs)), ms(stats.Median(errs)),
			ms(far), ms(limit))
	}
	for port, over := range map[int]string{instantAt: "nothing", instantRelayAt: "the relay"} {
		w, err := newTokenWorld()
		if err != nil {
			return out, err
		}
		r, err := t.streamIn(ctx, w, port, "--tokens", strconv.Itoa(instantTokens), "--requests", "1",
			"--rounds", strconv.Itoa(n))
		if err = errors.Join(err, w.close()); err != nil {
			return out, err
		}
		wrote, left, err := w.logs.compare(r.visits, n)
		if err != nil {
			return out, err
		}
		add("the server wrote it", over, wrote, wroteLimit)
		if len(left) > 0 {
			add("it left the relay", over, left, leftLimit)
		}
	}
	slices.SortFunc(out.rows, func(a, b row) int { return slices.Compare(a.cells, b.cells) })
	return out, nil
}

// p99 returns the least of some values that at least 99 % of them do not exceed. It sorts them.
func p99(xs []float64) float64 {
	slices.Sort(xs)
	return xs[(len(xs)*99+percent-1)/percent-1]
}

// compare returns how far tokens' instants are from the logs, in s. The visits are those with
// evidence of some rounds, each of one response, and the last ones of the logs.
func (l *logs) compare(visits []sample.Visit, rounds int) (wrote, left []float64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.wrote) - len(visits) // the search for the hops
	if before < 0 || len(visits) < rounds || len(visits)%rounds != 0 {
		return nil, nil, fmt.Errorf("evidence of %d visits in %d rounds, and %d responses", len(visits),
			rounds, len(l.wrote))
	}
	for i, v := range visits {
		e := v.Evidence
		if _, ok := e.Clear(); !ok || e.Responses != 1 || e.Matched != instantTokens {
			return nil, nil, fmt.Errorf("visit %d: %d tokens of %d responses", i, e.Matched, e.Responses)
		}
		request, onWay := 0.0, 0.0 // until the dialled port had it, and from then to the last hop's end
		for k, p := range e.Parts {
			switch p.Part {
			case sample.EvidenceRequest:
				request = e.Response.Last[k]
			case sample.EvidenceWire, sample.EvidenceClient:
			default:
				onWay += e.Response.Last[k]
			}
		}
		for k, at := range l.wrote[before+i] {
			wrote = append(wrote, math.Abs(e.Response.Written[k]-request-seconds(at)))
		}
		if len(e.Hops) > 1 {
			last := l.relayed[len(l.relayed)-len(visits)+i]
			left = append(left, math.Abs(onWay-seconds(last[len(last)-1])))
		}
	}
	return wrote, left, nil
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }

// noteRequest notes when a packet with a part of a request comes.
func (l *logs) noteRequest(p []byte) {
	const headers, ipv4, tcp = 40, 4, 6
	if len(p) <= headers || p[0]>>4 != ipv4 || p[9] != tcp {
		return
	}
	ip := int(p[0]&0xf) * 4
	if size := ip + int(p[ip+12]>>4)*4; int(binary.BigEndian.Uint16(p[2:])) > size {
		l.came.Store(time.Now().UnixNano())
	}
}

// serveLogged answers each request with tokens at fixed times after it, and logs when.
func (w *tokenWorld) serveLogged(c *net.TCPConn) {
	for br := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(br)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err != nil {
			return
		}
		came, asked, head := w.logs.came.Load(), time.Now(), streamHead
		var at []int64
		for i := range instantTokens {
			waitUntil(asked.Add(tokenFirst + time.Duration(i)*instantPace))
			text := head + chunk(tokenEvent(i))
			at = append(at, time.Now().UnixNano()-came)
			if _, err = io.WriteString(c, text); err != nil {
				return
			}
			head = ""
		}
		w.logs.mu.Lock()
		w.logs.wrote = append(w.logs.wrote, at)
		w.logs.mu.Unlock()
		if _, err = io.WriteString(c, streamEnd); err != nil {
			return
		}
	}
}

// relayLogged copies what the server sends, and logs when it passes on each token.
func (w *tokenWorld) relayLogged(client *net.TCPConn) {
	var server net.Conn
	err := w.server.Do(func() (err error) {
		server, err = net.Dial("tcp4", "127.0.0.1:"+strconv.Itoa(instantAt))
		return err
	})
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	var at []int64
	for b := make([]byte, 1<<16); ; {
		n, err := server.Read(b)
		if err != nil {
			return
		}
		now := time.Now().UnixNano() - w.logs.came.Load()
		for range bytes.Count(b[:n], []byte(`"content"`)) {
			at = append(at, now)
		}
		if bytes.Contains(b[:n], []byte("[DONE]")) {
			w.logs.mu.Lock()
			w.logs.relayed, at = append(w.logs.relayed, at), nil
			w.logs.mu.Unlock()
		}
		if _, err := client.Write(b[:n]); err != nil {
			return
		}
	}
}
