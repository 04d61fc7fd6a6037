package endpoint

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/bridgetoll/bridgetoll/internal/paths/vantage"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// resolveWith serves DNS until the test's end. answer makes the replies of a query, in their order.
func resolveWith(t *testing.T, answer func(m dnsmessage.Message) []dnsmessage.Message) (at string) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		b := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil {
				continue
			}
			m.Response = true
			for _, r := range answer(m) {
				if reply, err := r.Pack(); err == nil {
					_, _ = c.WriteTo(reply, from)
				}
			}
		}
	}()
	t.Cleanup(func() {
		c.Close()
		<-over
	})
	return c.LocalAddr().String()
}

// TestResolver takes only replies with the query's number, and knows their errors.
func TestResolver(t *testing.T) {
	at := resolveWith(t, func(m dnsmessage.Message) []dnsmessage.Message {
		early := m // of another query
		early.ID--
		early.RCode = dnsmessage.RCodeRefused
		echo := m // a query, and no reply
		echo.Response = false
		if m.Questions[0].Type == dnsmessage.TypeAAAA {
			m.RCode = dnsmessage.RCodeServerFailure
		}
		return []dnsmessage.Message{early, echo, m}
	})
	for path, want := range map[string]struct{ words, code string }{
		"a.example":            {"A a.example", ""},
		"a.example.?type=aaaa": {"AAAA a.example.", "SERVFAIL"},
	} {
		s, err := speakerOf(Address{URL: "dns://" + at + "/" + path}, "")
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		for range 3 {
			if err := d.ask(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := d.replies.Errors[want.code]; s.words() != want.words || d.replies.Unanswered != 0 ||
			(want.code != "") != (n == 3) || len(d.replies.Errors) > 1 {
			t.Errorf("%s: %+v", s.words(), d.replies)
		}
	}
}

func TestResolverNames(t *testing.T) {
	for text, want := range map[string]string{
		"dns://h":          "which name to ask for? dns://h/example.org",
		"dns://h/":         "which name to ask for? dns://h/example.org",
		"dns://h/a/b":      "which name to ask for? dns://h/example.org",
		"dns://h/a..b":     `"a..b" is not a name of DNS`,
		"dns://h/a?type=X": `"X" is no type of records that toll asks for`,
		"dns://h/a?x=A":    `"x" is no option of dns://, only type is, as in ?type=AAAA`,
		"dns://h/" + strings.Repeat("a", 64): `"` + strings.Repeat("a", 64) +
			`" is not a name of DNS`,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newResolver(Address{}, u); err == nil || err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// TestResolverLost counts queries without a reply, and gives up on a server that never replies, or
// is not there.
func TestResolverLost(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	third := resolveWith(t, func(m dnsmessage.Message) []dnsmessage.Message {
		if n.Add(1) == 3 {
			return nil
		}
		return []dnsmessage.Message{m}
	})
	never := resolveWith(t, func(dnsmessage.Message) []dnsmessage.Message { return nil })
	of := func(at string) *followed {
		s, err := speakerOf(Address{URL: "dns://" + at + "/a.example"}, "")
		if err != nil {
			t.Fatal(err)
		}
		return &followed{speaker: s, from: vantage.Local()}
	}
	began := time.Now()
	r := of(third)
	all, err := r.ask(t.Context(), sample.Load{Window: 0.1}, nil)
	if err != nil || len(all) != 2 || r.replies.Unanswered != 1 {
		t.Errorf("%d requests, %+v, %v", len(all), r.replies, err)
	}
	v := &sample.Visit{}
	noteReplies(v, r.replies, workload.CountDNSError)
	if v.Client.Counts[workload.CountUnanswered] != 1 {
		t.Errorf("%+v", v.Client.Counts)
	}
	if _, err := of(never).ask(t.Context(), sample.Load{Window: 0.1}, nil); !errors.Is(err, errLost) {
		t.Error(err)
	}
	if took := time.Since(began); took < 4*queryTimeout {
		t.Errorf("waited %v for 4 replies", took)
	}
	refused := testnet.UDP(t).String()
	var told *refusedError
	if _, err := of(refused).few(t.Context()); !errors.As(err, &told) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		time.Sleep(50 * time.Millisecond)
		cancel(errOther)
	}()
	began = time.Now()
	if _, err := of(never).ask(ctx, sample.Load{Window: 60}, nil); !errors.Is(err, errOther) ||
		time.Since(began) > time.Minute {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// TestQueriesTraced traces queries to a server that waits.
func TestQueriesTraced(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	const pause = 4 * time.Millisecond
	at := resolveWith(t, func(m dnsmessage.Message) []dnsmessage.Message {
		time.Sleep(pause)
		return []dnsmessage.Message{m}
	})
	testwait.Unhindered(t, time.Minute, func(u testing.TB) {
		q, err := newRequests([]Address{{Name: "r", URL: "dns://" + at + "/a.example"}}, "")
		if err != nil {
			u.Fatal(err)
		}
		defer q.Close()
		if err := q.Check(u.Context()); err != nil {
			u.Fatal(err)
		}
		p := q.Paths()[0]
		if len(p.Hops) != 1 || p.Facts["asks"] != "A a.example" || p.Dial != at {
			u.Fatalf("%+v", p)
		}
		traced(u, q, "r", sample.Traced, planted{hops: 1, serves: pause})
		traced(u, q, "r", sample.TracedThrice, planted{hops: 1, serves: pause})
	})
}
