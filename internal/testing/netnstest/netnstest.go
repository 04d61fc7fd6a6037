// Package netnstest makes network namespaces for tests.
package netnstest

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// New returns a network namespace that lasts until the end of the test. Without the permission to
// make one it skips the test, or fails it under CI=true.
func New(t testing.TB) *netns.NS {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, unix.EPERM) {
		pathtest.SkipOrFail(t, "network namespaces need root here")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	return ns
}

// Do calls f in a network namespace of its own. The test fails with its error.
func Do(t testing.TB, f func() error) {
	t.Helper()
	ns := New(t)
	defer ns.Close()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}
