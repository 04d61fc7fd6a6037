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
	"strconv"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

const (
	busyAt     = 7003
	busyPace   = 5 * time.Millisecond
	busyTokens = 400
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
			"toll's.", n,
			1/busyPace.Seconds(), percent*clear),
		head: []string{"who", "tokens", "seen", "packets lost", "CPU µs a token", "gap p50",
			"first token p50"}}
	w, err := newTokenWorld()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.listen(busyAt, serveMany); err != nil {
		return nil, err
	}
	for range t.scale.loaded {
		for _, user := range []uint32{0, nobody} {
			if err := t.streamMany(ctx, &out, w, user, n); err != nil {
				return nil, err
			}
		}
	}
	return []table{out}, nil
}

// serveMany sends tokens to each request, at an even pace.
func serveMany(c *net.TCPConn) {
	for br := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(br)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err == nil {
			_, err = io.WriteString(c, streamHead)
		}
		for i, began := 1, time.Now(); i <= busyTokens && err == nil; i++ {
			time.Sleep(time.Until(began.Add(time.Duration(i) * busyPace)))
			_, err = io.WriteString(c, chunk(tokenEvent(i)))
		}
		if err == nil {
			_, err = io.WriteString(c, streamEnd)
		}
		if err != nil {
			return
		}
	}
}

// streamMany adds a row on what toll, run by a user, sees of many sessions.
func (t *trial) streamMany(ctx context.Context, out *table, w *tokenWorld, user uint32,
	sessions int) error {
	cmd := t.command(ctx, "stream",
		"r=http://127.0.0.1:"+strconv.Itoa(busyAt), "--model", "m", "--tokens",
		strconv.Itoa(busyTokens), "--sessions", strconv.Itoa(sessions), "--rounds", "1", "--format",
		"json", "--quiet", "--force", "--timeout", "5m")
	who := "root"
	if user != 0 {
		who = "a user"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user,
			Gid: user}}
	}
	if err := cmd.in(w.server); err != nil {
		return err
	}
	var r struct {
		Cells []struct {
			Evidence *sample.Evidence
			Metrics  map[string]struct{ Median float64 }
		}
	}
	if err := json.Unmarshal(cmd.stdout.Bytes(), &r); err != nil || len(r.Cells) != 1 {
		return fmt.Errorf("read the report: %d cells, %w", len(r.Cells), err)
	}
	c, all := r.Cells[0], float64(sessions*busyTokens)
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	v, seen, lost := noWord, "-", "-"
	if user == 0 {
		if c.Evidence == nil {
			return errors.New("root saw no tokens")
		}
		v = holdsIf(c.Evidence.Lost == 0 && float64(c.Evidence.Matched) >= clear*all)
		seen = fmt.Sprintf("%.2f %%", percent*float64(c.Evidence.Matched)/all)
		lost = strconv.Itoa(c.Evidence.Lost)
	}
	out.add(v, who, strconv.Itoa(int(all)), seen, lost,
		fmt.Sprintf("%.1f", used.Seconds()/microsecond/all),
		workload.Briefly(c.Metrics["gap_p50"].Median),
		workload.Briefly(c.Metrics["first_token_p50"].Median))
	return nil
}
