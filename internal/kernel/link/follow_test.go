package link_test

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestFollow(t *testing.T) {
	ns := netnstest.New(t)
	done := make(chan struct{})
	var told <-chan struct{}
	if err := ns.Do(func() error {
		err := link.AddBridge("br")
		if err == nil {
			told, err = link.Follow(done)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		do   func() error
	}{
		{"a pair comes", func() error { return link.AddVeth("a", "b", unix.Gettid()) }},
		{"it becomes a port", func() error { return link.SetMaster("a", "br") }},
		{"it goes", func() error { return link.Remove("a") }},
	} {
		if err := ns.Do(c.do); err != nil {
			t.Fatal(err)
		}
		select {
		case <-told:
		case <-time.After(time.Minute):
			t.Fatalf("%s: nobody was told", c.what)
		}
	}
	// Messages come in order: a reported change proves that the one before was not reported.
	for quiet := false; !quiet; {
		select {
		case <-told:
		case <-time.After(50 * time.Millisecond):
			quiet = true
		}
	}
	if err := ns.Do(func() error {
		return errors.Join(link.SetMTU("br", 1400), link.SetMaxSize("br", 70000))
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
		t.Error("sizes and the MTU are told of")
	case <-time.After(50 * time.Millisecond):
	}
	close(done)
	for range told {
	}
}
