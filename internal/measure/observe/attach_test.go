package observe

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// TestAttach watches a server that takes 5 ms, whose client was connected before.
func TestAttach(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				lines(5*ms, false)(c)
			}()
		}
	}()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, enough := context.WithTimeout(t.Context(), patience)
	defer enough()
	go func() {
		r := bufio.NewReader(client)
		for {
			if _, err := io.WriteString(client, "request\n"); err != nil {
				return
			}
			if _, err := r.ReadString('\n'); err != nil {
				return
			}
		}
	}()
	got, err := Attach(ctx, func() (uint16, error) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return 0, err
		}
		return c.LocalAddr().(*net.TCPAddr).AddrPort().Port(), c.Close()
	}, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if got.Requests == 0 || got.Connections != 1 || got.Server.PID != os.Getpid() {
		t.Fatalf("%+v", got)
	}
	w, err := writes.Open(1)
	if err == nil && (!got.Writes || got.Lost == 0 && got.Unmatched > 0) {
		t.Errorf("%d and %d requests, those without writes", got.Requests, got.Unmatched)
	}
	if err == nil {
		_ = w.Close()
	}
	for _, p := range got.Parts {
		if p.Part == sample.EvidenceServer && p.P50 < (5*ms).Seconds() {
			t.Errorf("%+v", p)
		}
	}
}

func TestAttachToNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	failed := errors.New("nothing there")
	if _, err := Attach(t.Context(), func() (uint16, error) { return 0, failed },
		time.Second); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
}
