package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestMain(m *testing.M) {
	if ours, err := Inner(os.Args[1:]); ours {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestStartEnds(t *testing.T) {
	ns, err := netns.Here()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	at := Namespace{ns}
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	begun := filepath.Join(t.TempDir(), "begun")
	p, err := Start(ctx, at, "sh", "-c", "sleep 60 & echo begun; touch "+begun+"; wait")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		testwait.Met(40*time.Second, func() bool { _, err := os.Stat(begun); return err == nil })
		cancel()
	}()
	out, err := p.Wait()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 55*time.Second { // sleep's minute
		t.Errorf("it took %s", took)
	}
	if string(out) != "begun\n" {
		t.Errorf("printed %q", out)
	}
	if p, err = Start(t.Context(), at, "no-such-program"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("got %v", err)
	}
}

func TestVisit(t *testing.T) {
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		pathtest.SkipOrFail(t, "network namespaces need root here")
	}
	if err == nil {
		err = ns.Do(func() error { return link.Up("lo") })
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	at := netip.MustParseAddrPort("127.0.0.1:20000")
	for name, tool := range map[string]Tool{IPerf3: Bulk, IPerf3 + "-udp": UDP, QPerf: Trips,
		SockPerf: SockTrips, NetPerf: Connections} {
		t.Run(name, func(t *testing.T) {
			program, _, _ := strings.Cut(name, "-")
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			at = netip.AddrPortFrom(at.Addr(), at.Port()+1)
			dial := at
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			watched := false
			figure, err := tool.Visit(ctx, Ends{
				Server: Namespace{ns}, Client: Namespace{ns}, ServerCPUs: []int{0}},
				Ask{Listen: dial, Dial: dial, Size: 1000, Window: time.Second, Bitrate: 1e6},
				func(client, server *Process) error {
					watched = client.PID != server.PID
					return nil
				})
			if err != nil || !(figure > 0) || !watched {
				t.Errorf("got %v, %v; watched: %v", figure, err, watched)
			}
		})
	}
}
