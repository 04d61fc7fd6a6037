package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/measure/database"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/postgrestest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

func sqlEndpoints(t *testing.T, o database.Options, dsns ...string) *SQL {
	t.Helper()
	if o.Queries == 0 {
		o.Queries = 3
	}
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	var at []Address
	for i, d := range dsns {
		at = append(at, Address{Name: string(rune('a' + i)), URL: d})
	}
	s, err := newSQL(at, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func browsed(t *testing.T, ctx context.Context, s *SQL, l sample.Load) (sample.Visit, error) {
	t.Helper()
	var v sample.Visit
	began := time.Now()
	err := s.Visit(ctx, sample.Cell{Route: "a"}, l, &v)
	if took := time.Since(began); took > patience {
		t.Errorf("the visit took %s", took)
	}
	return v, err
}

func TestNewSQLNamesTheRoute(t *testing.T) {
	_, err := newSQL([]Address{{Name: "good", URL: "mysql://app@db"},
		{Name: "bad", URL: "mysql://app:hunter22@db"}}, database.Options{Queries: 1})
	wants(t, err, "bad: the DSN contains a password, which every user of this machine could see "+
		"in the "+
		"process list")
}

func TestSQLCheck(t *testing.T) {
	one, two := postgrestest.Start(t, "hunter22", nil), postgrestest.Start(t, "hunter22", nil)
	s := sqlEndpoints(t, database.Options{Password: "hunter22"}, one.DSN(), two.DSN())
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, p := range s.Paths() {
		e := []*postgrestest.Server{one, two}[i]
		if p.Route != s.Names()[i] || p.From != sample.FromHere || p.On != sample.OnEndpoint ||
			p.Dial != e.Addr || p.Hops == nil || p.Built <= 0 ||
			p.Facts["url"] != e.DSN() || p.Facts["server"] != "PostgreSQL 99 (test)" ||
			p.Facts["address family"] != "IPv4" ||
			(p.Facts[sample.FactExchangesUnseen] == "") != (p.Evidence != nil) {
			t.Errorf("%+v", p)
		}
	}
	if text, err := json.Marshal(s.Paths()); err != nil ||
		strings.Contains(string(text), "hunter22") {
		t.Errorf("%s (%v)", text, err)
	}
	both := sqlEndpoints(t, database.Options{Password: "hunter23"}, one.DSN(), two.DSN())
	err := both.Check(t.Context())
	wants(t, err, "a: connect to 127.0.0.1:PORT: FATAL: wrong password (SQLSTATE 28P01)")
	if hint.Of(err) == "" {
		t.Errorf("%v has no hint", err)
	}
}

// TestSQLEvidence plants a wait in the server.
func TestSQLEvidence(t *testing.T) {
	const pause = 5 * time.Millisecond
	e := postgrestest.Start(t, "", func(c net.Conn, n int64) bool {
		time.Sleep(pause)
		return postgrestest.Page(c, n)
	})
	testwait.Unhindered(t, time.Minute, func(u testing.TB) {
		s := sqlEndpoints(t, database.Options{Queries: 5}, e.DSN())
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := s.Paths()[0]
		if os.Geteuid() != 0 {
			if p.Evidence != nil || p.Facts[sample.FactExchangesUnseen] == "" {
				t.Errorf("%+v", p)
			}
			t.Skip("only root can capture packets")
		}
		why, ok := p.Evidence.Clear()
		if !ok || len(p.Evidence.Hops) != 1 || p.Evidence.Hops[0].PID != os.Getpid() {
			u.Fatalf("%s: %+v", why, p.Evidence)
		}
		for _, part := range p.Evidence.Parts {
			if part.Part == sample.EvidenceServer && part.P50 < pause.Seconds() {
				t.Errorf("%+v", part)
			}
		}
	})
}

func TestSQLVisit(t *testing.T) {
	const pause = 2 * time.Millisecond // of each query
	e := postgrestest.Start(t, "", func(c net.Conn, n int64) bool {
		time.Sleep(pause)
		return postgrestest.Page(c, n)
	})
	const sessions, queries, window = 3, 5, 0.1
	v, err := browsed(t, t.Context(), sqlEndpoints(t, database.Options{Queries: queries}, e.DSN()),
		sample.Load{Streams: sessions, Options: sample.SQLOptions{Queries: queries}, Warmup: 0.02,
			Window: window})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := v.Latency.Decode()
	if err != nil {
		t.Fatal(err)
	}
	asked, err := v.Times["query"].Decode()
	if err != nil {
		t.Fatal(err)
	}
	n := pages.TotalCount()
	// some were warm-up
	if n < sessions || v.Client.Trips != n*queries || asked.TotalCount() != v.Client.Trips ||
		v.Client.Trips >= e.Queries.Load() {
		t.Errorf("%d pages, %d and %d queries of %d", n, v.Client.Trips, asked.TotalCount(),
			e.Queries.Load())
	}
	if time.Duration(pages.Min()) < queries*pause*99/100 ||
		time.Duration(asked.Min()) < pause*9/10 {
		t.Errorf("a page took %s, a query %s", time.Duration(pages.Min()),
			time.Duration(asked.Min()))
	}
	if v.Client.Window < window/10 || v.Client.Connections != sessions ||
		e.Conns.Load() != sessions || v.Values["connect"] <= 0 || v.Client.TCP.RTT <= 0 {
		t.Errorf("%+v, connect %v; the server saw %d connections", v.Client, v.Values,
			e.Conns.Load())
	}
	if n, ok := v.Client.Counts[workload.CountRefused]; !ok || n != 0 {
		t.Errorf("counts %v", v.Client.Counts)
	}
	got := v.Client.Trips * int64(len(postgrestest.Result))
	if v.Client.Received != got || v.Client.Sent <= 0 {
		t.Errorf("received %d bytes, want %d; sent %d", v.Client.Received, got, v.Client.Sent)
	}
	testwait.Until(t, patience, "all connections are closed", func() bool {
		return e.Open.Load() == 0
	})
}

func TestSQLLongPage(t *testing.T) {
	e := postgrestest.Start(t, "", func(c net.Conn, n int64) bool {
		time.Sleep(30 * time.Millisecond)
		return postgrestest.Page(c, n)
	})
	v, err := browsed(t, t.Context(), sqlEndpoints(t, database.Options{}, e.DSN()),
		sample.Load{Options: sample.SQLOptions{Queries: 3}, Window: 0.001})
	if err != nil || v.Client.Trips != 3 || v.Client.Window < 0.09 {
		t.Errorf("%+v, %v", v.Client, err)
	}
	if got := v.Client.Received; got != int64(3*len(postgrestest.Result)) {
		t.Errorf("received %d bytes: without a warm-up, the window began before the query was prepared",
			got)
	}
}

func TestSQLFailures(t *testing.T) {
	which := regexp.MustCompile(`query \d of`) // of two sessions, that of the one which fails first
	for _, tt := range []struct {
		name   string
		answer func(c net.Conn, n int64) bool
		words  string
	}{
		{"hangs-up", func(c net.Conn, n int64) bool {
			return n < 20 && postgrestest.Page(c, n)
		}, "query N of 3: the server closed the connection"},
		{"error", func(c net.Conn, n int64) bool {
			if n < 20 {
				return postgrestest.Page(c, n)
			}
			io.WriteString(c, postgrestest.Message('E', "SERROR\x00VERROR\x00C53100\x00"+
				"Mdisk full\x00\x00")+postgrestest.Ready)
			return true
		}, "query N of 3: ERROR: disk full (SQLSTATE 53100)"},
		{"silent", func(c net.Conn, n int64) bool {
			return n >= 20 || postgrestest.Page(c, n)
		}, "query N of 3: no complete answer within 3s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := postgrestest.Start(t, "", tt.answer)
			timeout := patience
			if tt.name == "silent" {
				timeout = 3 * time.Second
			}
			s := sqlEndpoints(t, database.Options{Timeout: timeout}, e.DSN())
			v, err := browsed(t, t.Context(), s,
				sample.Load{Streams: 2, Options: sample.SQLOptions{Queries: 3},
					Window: patience.Seconds()})
			got := which.ReplaceAllString(fmt.Sprint(err), "query N of")
			if got != tt.words || v.Latency != nil {
				t.Errorf("%q, want %q; a failed visit has %+v", got, tt.words, v)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		e := postgrestest.Start(t, "", func(c net.Conn, n int64) bool {
			if n == 20 {
				cancel()
			}
			return postgrestest.Page(c, n)
		})
		_, err := browsed(t, ctx, sqlEndpoints(t, database.Options{}, e.DSN()),
			sample.Load{Streams: 2, Options: sample.SQLOptions{Queries: 3},
				Window: 2 * patience.Seconds()})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("gone", func(t *testing.T) {
		dsn := "postgres://app@" + testnet.TCP(t).String() + "/shop?sslmode=disable"
		v, err := browsed(t, t.Context(), sqlEndpoints(t, database.Options{}, dsn),
			sample.Load{Options: sample.SQLOptions{Queries: 3}})
		if wants(t, err, "connect to 127.0.0.1:PORT: connection refused"); v.Client.Counts[workload.CountRefused] != 1 {
			t.Errorf("counts %v", v.Client.Counts)
		}
	})
}

// A session whose only page goes on beyond the window lengthens no other's.
func TestSQLSessionThatStalls(t *testing.T) {
	const stall, pause, window = 500 * time.Millisecond, time.Millisecond, 0.1
	testwait.Unhindered(t, time.Minute, func(u testing.TB) {
		var first atomic.Pointer[string]
		e := postgrestest.Start(t, "", func(c net.Conn, n int64) bool {
			who := c.RemoteAddr().String()
			first.CompareAndSwap(nil, &who)
			if *first.Load() == who {
				time.Sleep(stall)
			}
			time.Sleep(pause)
			return postgrestest.Page(c, n)
		})
		s := sqlEndpoints(t, database.Options{Queries: 1}, e.DSN())
		v, err := browsed(t, t.Context(), s, sample.Load{Streams: 2, Window: window})
		if err != nil {
			u.Fatal(err)
		}
		rate := float64(v.Client.Trips) / v.Client.Window
		if least := 0.7 * float64(v.Client.Trips-1) / window; rate < least {
			u.Errorf("%d queries, %.0f per second, at least %.0f were made", v.Client.Trips, rate, least)
		}
	})
}
