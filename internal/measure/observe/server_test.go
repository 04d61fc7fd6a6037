package observe

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/gpu"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestDistantServer has a server on another machine that its CPU limit stops, loses segments, and has
// a GPU that nvidia-smi knows.
func TestDistantServer(t *testing.T) {
	client, other := joined(t)
	dir := limited(t)
	pid := startServer(t, other, "10.9.0.2:7001")
	// A packet that the sender's own filter drops may be sent again uncounted, as if it were new.
	filtered(t, client, `table ip t { chain i { type filter hook input priority 0;
		tcp sport 7001 meta length 60-2000 numgen inc mod 19 18 drop; }; }`)
	smi(t, pid)
	err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0)
	if err != nil {
		t.Fatal(err)
	}
	const n = 100 // 400 ms of CPU time
	k, _ := followThere(t, client, other, otherClock{ahead: 73 * time.Hour}, "http://10.9.0.2:7001", n)
	if s, far := k.watch.FarServer("r"); !far || s != (Server{Process: true, GPU: true}) {
		t.Errorf("%v %+v", far, s)
	}
	testwait.Unhindered(t, patience, func(u testing.TB) {
		v, err := k.watch.Begin(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		s := k.endpoint.Open()
		defer s.Close()
		r, err := s.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v.Add(r)
		if _, err := v.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := v.Counts()
		if c[workload.CountStops] < 3 || c[workload.CountPeriods] < c[workload.CountStops] ||
			c[workload.CountResent] == 0 || c[workload.CountSegments] < n/2 {
			u.Errorf("%v", c)
		}
		whole := gpu.Span{From: r.Began.Add(r.Arrivals[0]), To: r.Began.Add(r.End)}
		g := v.GPU(t.Context(), []gpu.Span{whole}, nil)
		if g == nil || g.Device != "GPU-1" || math.Abs(g.Rest.Share()-0.4) > 1e-9 ||
			math.Abs(g.Rest.Time-whole.To.Sub(whole.From).Seconds()) > 1e-6 {
			u.Errorf("%+v in %v", g, whole)
		}
		if g := v.GPU(t.Context(), []gpu.Span{whole}, nil); g != nil {
			u.Errorf("read twice: %+v", g)
		}
	})
}

// smi puts an nvidia-smi into PATH that knows a process, on a GPU that works for 40 % of the time.
func smi(t *testing.T, pid int) {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
case $1 in --query-compute-apps=*) echo "%d, GPU-1"; exit;; esac
while :; do echo "$(date '+%%Y/%%m/%%d %%H:%%M:%%S.%%3N'), GPU-1, 40"; sleep 0.1; done
`, pid)
	if err := os.WriteFile(dir+"/nvidia-smi", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// TestProxyPorts has connections of a docker-proxy to the server behind it, and others.
func TestProxyPorts(t *testing.T) {
	m := newMachine(t)
	hold := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	m.serve(t, "127.0.0.1:7001", hold)
	m.serve(t, "127.0.0.1:7002", hold)
	for _, at := range []string{"127.0.0.1:7001", "127.0.0.1:7001", "127.0.0.1:7002"} {
		c, _, err := m.dial(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	w, err := only(m)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	found, err := w.find()
	w.merge(found)
	if err != nil || len(w.spaces) != 1 {
		t.Fatalf("%d namespaces: %v", len(found), err)
	}
	r := &route{hops: []hop{{to: netip.MustParseAddrPort("127.0.0.1:7001")},
		{about: sample.EvidenceHop{Process: "docker-proxy"}}}}
	s := w.serverOf(t.Context(), r, nil)
	if c := s.counts(); len(c) != 2 || c[workload.CountPortsUsed] != 2 ||
		c[workload.CountPortRange] < 1000 {
		t.Errorf("%v", c)
	}
	r.hops[1].about.Process = "nginx"
	if c := w.serverOf(t.Context(), r, nil).counts(); c != nil {
		t.Errorf("%v without a docker-proxy", c)
	}
}

func TestNewsOfServersAreChecked(t *testing.T) {
	good := news{Counts: map[string]int64{workload.CountStops: 3},
		GPU: &sample.GPU{Slow: sample.GPUTime{Time: 2, Busy: 1}}}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, n := range map[string]news{
		"another count": {Counts: map[string]int64{"x": 1}},
		"less":          {Counts: map[string]int64{workload.CountStops: -1}},
		"too busy":      {GPU: &sample.GPU{Rest: sample.GPUTime{Time: 1, Busy: 2}}},
		"negative":      {GPU: &sample.GPU{Rest: sample.GPUTime{Time: 1, Busy: -1}}},
		"long":          {GPU: &sample.GPU{Slow: sample.GPUTime{Time: 1e300}}},
	} {
		if err := n.check(); !errors.Is(err, errNonsense) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
