package exchange

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	soon     = 200 * time.Millisecond
	patience = time.Minute
)

// endless writes until the client disconnects.
func endless(w http.ResponseWriter, r *http.Request, text string) {
	text = strings.Repeat(text, 1000) // the detector makes many small writes slow
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

func TestTransport(t *testing.T) {
	for name, tt := range map[string]struct {
		serve  http.HandlerFunc
		limit  time.Duration
		stream bool
		want   error // nil: the whole answer arrives
	}{
		"answers": {serve: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "yes")
		}, limit: patience},
		"silent": {serve: func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, limit: soon, want: new(SlowError)},
		"stops-midway": {serve: func(w http.ResponseWriter, r *http.Request) {
			startThenHang(w, r)
		}, limit: soon, want: new(SlowError)},
		"drips": {serve: func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				io.WriteString(w, "[")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Millisecond)
			}
		}, limit: soon, want: new(SlowError)},
		"endless": {serve: func(w http.ResponseWriter, r *http.Request) {
			endless(w, r, "[{},{},")
		}, limit: patience, want: ErrTooLong},
		"silent-stream": {serve: func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, limit: soon, stream: true, want: new(SlowError)},
		"endless-line": {serve: func(w http.ResponseWriter, r *http.Request) {
			endless(w, r, "[{},{},")
		}, limit: patience, stream: true, want: ErrTooLong},
		"stream-of-lines": {serve: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("{}\n", maxAnswer/2))
		}, limit: patience, stream: true},
		"more-than-allowed": {serve: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("x", maxAnswer+1))
		}, limit: patience, want: ErrTooLong},
		"exactly-allowed": {serve: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("x", maxAnswer))
		}, limit: patience},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tt.serve)
			defer s.Close()
			c := &http.Client{Transport: &Transport{
				Base: &http.Transport{DisableKeepAlives: true}, What: "the server",
				Limit: func(*http.Request) time.Duration {
					return tt.limit
				}, Stream: func(*http.Request) bool { return tt.stream }}}
			answer, err := c.Get(s.URL)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			switch slow := new(SlowError); {
			case tt.want == nil && err != nil, errors.Is(tt.want, ErrTooLong) &&
				!errors.Is(err, ErrTooLong):
				t.Errorf("error %v, want %v", err, tt.want)
			case errors.As(tt.want, &slow) && (!errors.As(err, &slow) ||
				!errors.Is(err, context.DeadlineExceeded)):
				t.Errorf("error %v, want that it is late", err)
			}
		})
	}
}

func startThenHang(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, "[{")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// A stream that began in time may exceed its limit.
func TestStreamLasts(t *testing.T) {
	proceed := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "1\n")
		_ = http.NewResponseController(w).Flush()
		<-proceed
		io.WriteString(w, "2\n")
	}))
	defer s.Close()
	limit := patience
	c := &http.Client{Transport: &Transport{
		Base: &http.Transport{DisableKeepAlives: true}, What: "the server",
		Limit: func(*http.Request) time.Duration {
			return limit
		}, Stream: func(*http.Request) bool { return true }}}
	answer, err := c.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	if !lines.Scan() {
		t.Fatal(lines.Err())
	}
	time.Sleep(soon)
	close(proceed)
	if !lines.Scan() || lines.Text() != "2" {
		t.Errorf("%q, %v", lines.Text(), lines.Err())
	}
}

func TestOutput(t *testing.T) {
	for name, tt := range map[string]struct {
		script    string
		limits    Limits
		out, says string
	}{
		"prints": {"echo yes; echo no >&2", Limits{Time: patience}, "yes\n", ""},
		"hangs": {"sleep 300 & sleep 300", Limits{Time: soon}, "",
			"sh did not answer within 200ms"},
		"floods": {"yes", Limits{Time: patience, Output: 1 << 16}, "",
			"sh: the answer is too long"},
		"complains": {`printf 'a\033[31mred\nline' >&2; exit 3`, Limits{Time: patience}, "",
			`exit status 3: a\x1b[31mred line`},
		"floods-stderr": {"head -c 10000000 /dev/zero | tr '\\0' x >&2; exit 1",
			Limits{Time: patience}, "",
			"exit status 1: " + strings.Repeat("x", 2<<10)},
		"leaves-a-child": {"echo yes; sleep 300 &", Limits{Time: patience}, "yes\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", tt.script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := Output(t.Context(), cmd, tt.limits)
			if string(out) != tt.out || tt.says != "" && (err == nil || err.Error() != tt.says) ||
				tt.says == "" && err != nil {
				t.Errorf("%q, %v", out, err)
			}
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		})
	}
}

func TestWaiting(t *testing.T) {
	told := make(chan string, 1)
	var once sync.Once
	defer Tell(func(line string) { once.Do(func() { told <- line }) })()
	defer Waiting("a \x1b[2J server")()
	Waiting("another one")()
	select {
	case line := <-told:
		if line != `waiting for a \x1b[2J server` {
			t.Errorf("%q", line)
		}
	case <-time.After(patience):
		t.Error("nothing was told")
	}
}

func TestTextsOfErrorsAreCut(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"docker", `{"message":"` + long + `"}`, 500, `{"message":"` + long[:maxError] + `…"}`},
		{"podman", `{"cause":"c","message":"m` + long + `","response":500}`, 500,
			`{"cause":"c","message":"m` + long[:maxError-1] + `…","response":500}`},
		{"text", long, 502, long[:maxError] + "…"},
		{"half-of-json", `{"message":"` + long, 400, `{"message":"` + long[:maxError-12] + "…"},
		{"short", `{"message":"no such network"}`, 404, `{"message":"no such network"}`},
		{"no-error", long, 200, long},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			defer s.Close()
			h := http.Client{Transport: &Transport{Base: http.DefaultTransport,
				Limit: func(*http.Request) time.Duration { return time.Minute }}}
			got, err := h.Get(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			text, err := io.ReadAll(got.Body)
			if err != nil || string(text) != c.want || got.StatusCode != c.status {
				t.Errorf("%d, %v, %d bytes: %.100s", got.StatusCode, err, len(text), text)
			}
		})
	}
}
