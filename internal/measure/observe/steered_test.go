package observe

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/trace"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestSteeredForAMoment has a client that goes on until nothing traces its packets any more.
func TestSteeredForAMoment(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	client, server := joined(t)
	const at = "10.9.0.2:80"
	server.serve(t, at, lines(0, false))
	tracer, err := trace.Open()
	if err != nil {
		pathtest.SkipOrFail(t, "%v", err)
	}
	stop := asking(t, func() (net.Conn, error) {
		c, _, err := client.dial(context.Background(), "tcp", at)
		return c, err
	}, 1)
	defer stop()
	traced := false
	if _, err := handed(map[device]sample.Steered{{}: {}}, []uint16{80}, func() error {
		traced = len(tracer.Others()) > 0
		testwait.Until(t, patience, "the end of the tracing", func() bool {
			return len(tracer.Others()) == 0
		})
		return nil
	}); err != nil || !traced {
		t.Errorf("traced %v, %v", traced, err)
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
