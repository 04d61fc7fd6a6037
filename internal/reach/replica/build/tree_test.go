package build

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// inTree runs f in a namespace with a bridge that has just begun a spanning tree, with a delay in
// hundredths of a second. Its two ports lead to each other, by way of another bridge.
func inTree(t *testing.T, delay string, f func(bridge link.Saved, found []link.Saved) error) {
	t.Helper()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "bridges need root")
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	err = ns.Do(func() error {
		out, err := exec.Command("sh", "-ec", `ip link add br9 type bridge forward_delay "$1" stp_state 1
ip link add br7 up type bridge
for i in 1 2; do
ip link add p$i type veth peer name q$i
ip link set q$i master br7 up
ip link set p$i master br9 up
done
ip link set br9 up`, "sh", delay).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		found, err := link.ReadLinks()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(found, func(l link.Saved) bool { return l.Name == "br9" })
		return f(found[i], found)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ports of a tree that has not settled might lead frames in circles if they were opened.
func TestTreeThatDoesNotSettle(t *testing.T) {
	inTree(t, "3000", func(bridge link.Saved, _ []link.Saved) error {
		if _, err := settled(t.Context(), bridge, time.Millisecond); !errors.Is(err, errUnsettled) {
			t.Errorf("a slow tree: %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := settled(ended, bridge, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("nobody waits any more: %v", err)
		}
		return nil
	})
}

// What fails at one bridge is not forgotten when the tree of the next one has settled.
func TestStopTreesOfTwoBridges(t *testing.T) {
	inTree(t, "200", func(bridge link.Saved, found []link.Saved) error {
		gone := bridge
		gone.Index, gone.Name = 1<<20, "br8"
		_, err := (&machine{survey: &survey{}}).stopTrees(t.Context(), 0, append([]link.Saved{gone}, found...))
		if !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EINVAL) {
			t.Errorf("a bridge that is gone: %v", err)
		}
		now, err := link.ReadLinks()
		if err != nil {
			return err
		}
		blocked := 0
		for _, l := range now {
			if l.Master == bridge.Index && l.Settling() {
				t.Errorf("port %s is not open", l.Name)
			}
			if l.Master == bridge.Index && l.Blocked() {
				blocked++
			}
		}
		if blocked != 1 {
			t.Errorf("%d of the ring's two ports are blocked", blocked)
		}
		return nil
	})
}
