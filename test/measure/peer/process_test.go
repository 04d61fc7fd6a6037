package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testwait"
)

func TestMain(m *testing.M) {
	if ours, err := Inner(os.Args[1:]); ours {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Other programs and their child processes end with their context.
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
