package pipe

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// A schedule of thousands of slices is longer than a pipe.
func TestSendToOneWhoDoesNotRead(t *testing.T) {
	defer func(d time.Duration) { sendTimeout = d }(sendTimeout)
	sendTimeout = 20 * time.Millisecond
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	l := New[string](w, out)
	sent := make(chan error, 1)
	go func() { sent <- l.Send(strings.Repeat("x", 1<<20)) }()
	select {
	case err := <-sent:
		if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrDied) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it is still sending")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
