package docker

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

// slowEngine counts the things that it makes slowly.
type slowEngine struct {
	creates, starts, networks atomic.Int64
	first                     func()
}

func (s *slowEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	made := int64(0)
	switch {
	case strings.HasSuffix(r.URL.Path, "/containers/create"):
		made = s.creates.Add(1)
	case strings.HasSuffix(r.URL.Path, "/networks/create"):
		made = s.networks.Add(1)
	case strings.HasSuffix(r.URL.Path, "/start"):
		s.starts.Add(1)
	case r.Method == http.MethodDelete:
		http.NotFound(w, r)
		return
	default:
		engineSays(anEngine)(w, r)
		return
	}
	if made == 1 {
		s.first()
	}
	time.Sleep(50 * time.Millisecond)
	w.WriteHeader(http.StatusInternalServerError)
}

func interrupted(t *testing.T) (*slowEngine, *site) {
	t.Helper()
	if err := mayRead("Docker"); err != nil {
		t.Skip(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	slow := &slowEngine{first: stop}
	server := fakeDaemon(t, slow)
	d := &Docker{Program: "/nonexistent", StateDir: t.TempDir()}
	e, err := d.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.image.tag = "toll"
	p := &path.Path{Facts: map[string]string{}}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), d.Close()); err != nil {
			t.Error(err)
		}
		server.Close()
		stop()
	})
	s, err := e.newSite(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	return slow, s
}

// Requests in progress cannot be cancelled, so few are sent at once and none after an interrupt.
func TestInterruptedBuild(t *testing.T) {
	slow, s := interrupted(t)
	wants := make([]wanted, 20*runtime.NumCPU())
	for i := range wants {
		wants[i] = wanted{what: "container", role: "client"}
	}
	if _, err := s.addBoxes(wants); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if n := slow.creates.Load(); n < 1 || n > int64(2*runtime.NumCPU()) || slow.starts.Load() > 0 {
		t.Errorf("%d of %d containers were asked for, %d started", n, len(wants),
			slow.starts.Load())
	}

	slow, s = interrupted(t)
	_ = atOnce(8, func(int) error {
		_, err := (&site{ctx: s.ctx, engine: s.engine, path: s.path,
			prefix: "toll-" + dockerapi.NewID()}).addNetwork("bridge", nil)
		return err
	})
	if n := slow.networks.Load(); n != 1 {
		t.Errorf("%d networks were asked for, want 1", n)
	}
}
