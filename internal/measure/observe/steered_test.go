package observe

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// recorded is a recording with events from a time on.
type recorded struct{ from, stopped time.Time }

func (r *recorded) Recorded() bool { return !time.Now().Before(r.from) }

func (r *recorded) Stop() error {
	r.stopped = time.Now()
	return nil
}

// TestStopAfter checks when a recording ends whose first event comes after a time, or after it.
func TestStopAfter(t *testing.T) {
	const often = 10 * ms
	for name, tt := range map[string]struct{ first, done, want time.Duration }{
		"a moment":     {time.Second, time.Hour, time.Second + moment},
		"done earlier": {time.Second, time.Second + moment/2, time.Second + moment/2},
		"no event":     {time.Hour, time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				rec, done := &recorded{from: began.Add(tt.first)}, make(chan struct{})
				time.AfterFunc(tt.done, func() { close(done) })
				err := stopAfter(rec, done)
				if took := rec.stopped.Sub(began); err != nil || took < tt.want || took > tt.want+2*often {
					t.Errorf("stopped after %s, want %s: %v", took, tt.want, err)
				}
				<-done
			})
		})
	}
}

// TestSteered lets a device of the server leave its packets to all CPUs, or not.
func TestSteered(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	if runtime.NumCPU() < 2 {
		pathtest.SkipOrFail(t, "one CPU leaves packets to no other one")
	}
	client, server := joined(t)
	const at = "10.9.0.2:80"
	server.serve(t, at, lines(0, false))
	dial := func() (net.Conn, error) {
		c, _, err := client.dial(context.Background(), "tcp", at)
		return c, err
	}
	for _, on := range []bool{false, true} {
		if err := server.Do(func() error { return link.RPS.Steer("eth0", on) }); err != nil {
			pathtest.SkipOrFail(t, "%v", err)
		}
		testwait.Unhindered(t, patience, func(u testing.TB) {
			is := func(what string, got []sample.Steered) {
				switch {
				case !on && len(got) > 0, on && len(got) != 1:
					u.Errorf("%s, steers %v: %+v", what, on, got)
				case on && (got[0].Device != "eth0" || !got[0].Apart || got[0].Packets < 1 ||
					got[0].Moved > 0 && got[0].Wait <= 0):
					u.Errorf("%s: %+v", what, got)
				}
			}
			is("a route", settled(u, client, at, dial).Steered)
			stop := asking(u, dial, 1)
			defer stop()
			s, err := attach(u.Context(), client.pid, probing(dial))
			if err != nil {
				u.Fatal(err)
			}
			got, err := s.watch(u.Context(), time.Second)
			if err := errors.Join(err, s.Close()); err != nil {
				u.Fatal(err)
			}
			is("attached", got.Steered)
		})
	}
}
