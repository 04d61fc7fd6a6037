package observe

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestAttachTellsPipelinedRequestsApart counts the requests of redis-benchmark -P 16.
func TestAttachTellsPipelinedRequestsApart(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	const n, depth, few = 3200, 16, 10 // redis-benchmark asks for the configuration, too
	at := testnet.TCP(t)
	port := strconv.Itoa(int(at.Port()))
	redis(t, port)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		got := attachedDuring(u, at.String(), exec.Command("redis-benchmark", "-p", port, "-c", "1",
			"-P", strconv.Itoa(depth), "-n", strconv.Itoa(n), "-t", "get", "--csv"))
		if got.Lost > 0 || got.Spells > 0 {
			u.Fatalf("%+v", got)
		}
		const behind = n / depth * (depth - 1)
		if got.Requests < n || got.Requests > n+few || got.Pipelined < behind ||
			got.Pipelined > behind+few || got.Unread > 0 || got.Unmatched > 0 {
			u.Errorf("%d requests, %d pipelined, %d unread, %d unmatched", got.Requests, got.Pipelined,
				got.Unread, got.Unmatched)
		}
	})
}

// TestAttachSaysWhatItCannotTell has a protocol that toll does not read.
func TestAttachSaysWhatItCannotTell(t *testing.T) {
	testwait.Unhindered(t, patience, func(u testing.TB) {
		got, _ := attached(u, 1, 5*ms, time.Second, 1e9)
		if got.Requests == 0 || got.Unread < got.Requests || got.Pipelined > 0 {
			u.Errorf("%+v", got)
		}
	})
}

// TestAttachTellsStreamsApart has gRPC's protocol: a connection with several requests at a time, which
// are answered in another order than they come.
func TestAttachTellsStreamsApart(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	const least, at, each = 5 * ms, 4, 20
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	var n atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(least * time.Duration(1+n.Add(1)%at))
		_, _ = io.WriteString(w, "answer")
	}))
	s.Config.Protocols = &protocols
	s.Start()
	defer s.Close()
	c := &http.Client{Transport: &http.Transport{Protocols: &protocols}}
	defer c.CloseIdleConnections()
	ask := func(u testing.TB) {
		r, err := c.Post(s.URL, "text/plain", strings.NewReader("request"))
		if err != nil {
			u.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	ask(t) // opens the connection
	testwait.Unhindered(t, patience, func(u testing.TB) {
		w, err := attach(u.Context(), os.Getpid(), probing(func() (net.Conn, error) {
			return net.Dial("tcp", s.Listener.Addr().String())
		}))
		if err != nil {
			u.Fatal(err)
		}
		w.most = 1e9
		got := w.during(u, func() {
			var all sync.WaitGroup
			for range at {
				all.Go(func() {
					for range each {
						ask(u)
					}
				})
			}
			all.Wait()
		})
		if got.Requests != at*each || got.Connections != 1 || got.Pipelined == 0 ||
			got.Unread+got.Unmatched+got.Unanswered > 0 {
			u.Errorf("%+v", got)
		}
		for _, x := range got.Slowest {
			if x.Whole < least.Seconds() {
				u.Errorf("%+v", x)
			}
		}
		if mean := least.Seconds() * (1 + at) / 2; got.Whole.Mean < mean || got.Whole.Mean > 1.5*mean {
			u.Errorf("the requests took %v s, want %v", got.Whole.Mean, mean)
		}
	})
}
