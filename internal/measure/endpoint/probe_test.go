package endpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

func serving(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	return testnet.Serve(t, answer).String()
}

// likeRedis answers PING with a payload, and PING without one with says.
func likeRedis(says string) func(net.Conn) {
	return func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			switch {
			case strings.HasPrefix(line, "PING"):
				fmt.Fprint(c, says)
			case line == "*2\r\n":
				for range 3 {
					if line, err = r.ReadString('\n'); err != nil {
						return
					}
				}
				var n int
				fmt.Sscanf(line, "$%d", &n)
				b := make([]byte, n+2)
				if _, err := io.ReadFull(r, b); err != nil {
					return
				}
				fmt.Fprintf(c, "$%d\r\n%s", n, b)
			default:
				fmt.Fprint(c, "-ERR unknown command\r\n")
				return
			}
		}
	}
}

func likePostgres(c net.Conn) {
	b := make([]byte, 8)
	if _, err := io.ReadFull(c, b); err != nil || string(b[4:]) != "\x04\xd2\x16\x2f" {
		return
	}
	fmt.Fprint(c, "N")
	_, _ = io.Copy(io.Discard, c)
}

func TestProbe(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/broken":
			w.WriteHeader(http.StatusBadGateway)
		case "/close":
			w.Header().Set("Connection", "close")
		case "/slow": // three connections take longer than a visit
			time.Sleep(seconds(probeWindow) / 2)
		case "/huge":
			for range mostReply/bulkReply + 4 {
				_, _ = w.Write(make([]byte, bulkReply))
			}
		case "/large":
			_, _ = w.Write(make([]byte, bulkReply))
		}
		fmt.Fprint(w, r.Method, n)
	}))
	t.Cleanup(page.Close)
	web := strings.TrimPrefix(page.URL, "http://")
	mute := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	hasty := func(c net.Conn) { fmt.Fprint(c, "220 mail\r\n"); mute(c) }
	for name, c := range map[string]struct {
		at   string
		port uint16
		want string
	}{
		"http":           {web, 80, "http /"},
		"http-elsewhere": {web, 6379, "http /"},
		"redis":          {serving(t, likeRedis("+PONG\r\n")), 6379, "redis"},
		"redis-password": {serving(t, likeRedis("-NOAUTH Authentication required.\r\n")), 80,
			"redis"},
		"postgres": {serving(t, likePostgres), 5432, "postgres"},
		"greeting": {serving(t, hasty), 25, "greeting"},
		"closes":   {serving(t, func(net.Conn) {}), 7, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := recognize(context.Background(), c.at, c.port)
			if s.name != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v", s.name, err)
			}
		})
	}
	redis := serving(t, likeRedis("+PONG\r\n"))
	line := strings.Repeat("x", 4<<20) + "\r\n"
	long := serving(t, func(c net.Conn) { fmt.Fprint(c, line); mute(c) })
	silent := serving(t, mute)
	odd := serving(t, func(c net.Conn) { fmt.Fprint(c, "X"); mute(c) })
	for _, c := range []struct{ word, at, metrics, fault string }{
		{"http:/a?b=c", web, "request connecting", ""},
		{"post:/in", web, "throughput connecting", ""},
		{"http:/large", web, "throughput connecting", ""},
		{"http:/huge", web, "throughput connecting", ""},
		{"http", long, "", "malformed"}, {"redis", long, "", "not Redis"},
		{"redis", redis, "request connecting", ""},
		{"redis-bulk", redis, "throughput connecting", ""}, {"http:/close", web, "connecting", ""},
		{"http:/slow", web, "request connecting", ""},
		{"http:/broken", web, "", "502"}, {"redis", web, "", "not Redis"},
		{"postgres", odd, "", "not PostgreSQL"},
	} {
		p, err := NewProbe(context.Background(), c.word, c.at, 0, "a", "b")
		if err != nil {
			if c.fault == "" || !strings.Contains(err.Error(), c.fault) || len(err.Error()) > 400 {
				t.Errorf("%s: %.400v", c.word, err)
			}
			continue
		}
		var metrics []string
		for _, g := range workload.ExecOf(p.Load()).Program.Gauges {
			metrics = append(metrics, g.Name)
		}
		var v sample.Visit
		err = p.Visit(context.Background(), sample.Cell{Route: "b"}, p.Load(), &v)
		paths := p.Paths()
		if err != nil || c.fault != "" || strings.Join(metrics, " ") != c.metrics ||
			len(v.Values) != len(metrics) || v.Values["connecting"] <= 0 ||
			v.Client.Connections < 3 || len(paths) != 2 || paths[1].Dial != c.at {
			t.Errorf("%s: %v, %v, %+v", c.word, err, metrics, v)
		}
	}
	// The context ends while the server is silent.
	for _, word := range []string{"http", "postgres"} {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if _, err := NewProbe(ctx, word, silent, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", word, err)
		}
		ctx, cancel = context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		s, _ := protocolOf(word, silent)
		if err := try(ctx, silent, s, hearing); !strings.Contains(fmt.Sprint(err), "closed") {
			t.Errorf("%s: %v", word, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := NewProbe(ctx, "redis", redis, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, word := range []string{"", "ftp", "http:", "http:x", "http://host/x", "post", "post:",
		"redis:1", "http:/a b", "http:/a\r\nX: y"} {
		if err := CheckProbe(word); err == nil {
			t.Errorf("%q is a request", word)
		}
	}
}
