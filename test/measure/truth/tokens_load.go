package truth

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	busyAt     = 7003
	busyPace   = 20 * time.Millisecond
	busyTick   = time.Millisecond
	busyTokens = 250
	nobody     = 65534
	// clear is the share of the tokens that must be found at every hop.
	clear = 0.95
)

// loadedTokens shows what watching many sessions costs and loses.
func (t *trial) loadedTokens(ctx context.Context) (_ []table, err error) {
	n := t.scale.sessions
	out := table{title: "Tokens: many sessions",
		text: fmt.Sprintf("`toll stream` with %d sessions of %.0f tokens a second, in turns as "+
			"root, who captures packets, and as a user, who may not. A row of root's holds if "+
			"nothing was lost and %.0f %% of the tokens were seen at every hop. CPU time is "+
			"toll's and the server's. The parts of a token's time that are not the server's work "+
			"are at their p99.", n, 1/busyPace.Seconds(), percent*clear),
		head: []string{"who", "tokens", "seen", "packets lost", "CPU µs a token", "server's",
			"gap p50", "gap p99", "first token p50", "parts"}}
	w, err := newTokenWorld()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	var many wheel
	if err := w.listen(busyAt, many.serve); err != nil {
		return nil, err
	}
	go many.run(w.ended)
	for range t.scale.loaded {
		for _, user := range []uint32{0, nobody} {
			if err := t.streamMany(ctx, &out, w, user, n); err != nil {
				return nil, err
			}
		}
	}
	return []table{out}, nil
}

// wheel sends tokens to many sessions at an even pace from one thread: a timer and a goroutine for
// each would cost as much as the sending. Each tick serves the sessions of one slot.
type wheel struct {
	mu    sync.Mutex
	slots [busyPace / busyTick][]*busy
}

// busy is a session that gets tokens.
type busy struct {
	to   net.Conn
	sent int
	over chan error
}

// run serves the sessions until ended is closed.
func (w *wheel) run(ended <-chan struct{}) {
	runtime.LockOSThread()
	began := time.Now()
	for i := 0; ; i++ {
		rest := unix.NsecToTimespec(int64(time.Until(began.Add(time.Duration(i) * busyTick))))
		if rest.Nano() > 0 {
			_ = unix.Nanosleep(&rest, nil)
		}
		select {
		case <-ended:
			return
		default:
			w.tick(i % len(w.slots))
		}
	}
}

func (w *wheel) tick(slot int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slots[slot] = slices.DeleteFunc(w.slots[slot], func(b *busy) bool {
		b.sent++
		_, err := io.WriteString(b.to, chunk(tokenEvent(b.sent)))
		if err != nil || b.sent == busyTokens {
			b.over <- err
			return true
		}
		return false
	})
}

// serve answers each request of a connection with tokens, and adds it to the slot with the fewest.
func (w *wheel) serve(c *net.TCPConn) {
	for br := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(br)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err == nil {
			_, err = io.WriteString(c, streamHead)
		}
		if err == nil {
			b := &busy{to: c, over: make(chan error, 1)}
			w.add(b)
			err = <-b.over
		}
		if err == nil {
			_, err = io.WriteString(c, streamEnd)
		}
		if err != nil {
			return
		}
	}
}

func (w *wheel) add(b *busy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	least := 0
	for i, s := range w.slots {
		if len(s) < len(w.slots[least]) {
			least = i
		}
	}
	w.slots[least] = append(w.slots[least], b)
}

// streamed is what toll, run by a user, said of a route.
type streamed struct {
	Cells []struct {
		Evidence *sample.Evidence
		Metrics  map[string]struct{ Median float64 }
	}
	used time.Duration // CPU time
}

// streamAs runs toll stream by a user inside the server's namespace, for one round.
func (t *trial) streamAs(ctx context.Context, w *tokenWorld, user uint32, port int,
	args ...string) (r streamed, err error) {
	cmd := t.command(ctx, append([]string{"stream", "r=http://127.0.0.1:" + strconv.Itoa(port), "--model",
		"m", "--rounds", "1", "--format", "json", "--quiet", "--force"}, args...)...)
	if user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user,
			Gid: user}}
	}
	if err := cmd.in(w.server); err != nil {
		return r, err
	}
	if err := json.Unmarshal(cmd.stdout.Bytes(), &r); err != nil || len(r.Cells) != 1 {
		return r, fmt.Errorf("read the report: %d cells, %w", len(r.Cells), err)
	}
	if (user == 0) != (r.Cells[0].Evidence != nil) {
		return r, errors.New("root must see tokens, and others must not")
	}
	r.used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return r, nil
}

// streamMany adds a row on what toll, run by a user, sees of many sessions.
func (t *trial) streamMany(ctx context.Context, out *table, w *tokenWorld, user uint32,
	sessions int) error {
	before, err := ownCPU()
	if err != nil {
		return err
	}
	r, err := t.streamAs(ctx, w, user, busyAt, "--tokens", strconv.Itoa(busyTokens), "--sessions",
		strconv.Itoa(sessions), "--timeout", "5m")
	if err != nil {
		return err
	}
	after, err := ownCPU()
	if err != nil {
		return err
	}
	c, all := r.Cells[0], float64(sessions*busyTokens)
	each := func(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()/microsecond/all) }
	who, v, seen, lost, parts := "a user", noWord, "-", "-", "-"
	if user == 0 {
		v = holdsIf(c.Evidence.Lost == 0 && float64(c.Evidence.Matched) >= clear*all)
		seen = fmt.Sprintf("%.2f %%", percent*float64(c.Evidence.Matched)/all)
		who, lost, parts = "root", strconv.Itoa(c.Evidence.Lost), ""
		for _, p := range c.Evidence.Parts {
			if p.Part != sample.EvidenceServer && p.Part != sample.EvidenceRequest {
				parts += fmt.Sprintf("%s %s ", p.Part, workload.Briefly(p.P99))
			}
		}
	}
	out.add(v, who, strconv.Itoa(int(all)), seen, lost, each(r.used), each(after-before),
		workload.Briefly(c.Metrics[workload.GapP50].Median),
		workload.Briefly(c.Metrics[workload.GapP99].Median),
		workload.Briefly(c.Metrics[workload.FirstTokenP50].Median), parts)
	return nil
}

// ownCPU returns the CPU time of this process, which is the server.
func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
