package dockerapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	imageapi "github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "toll-daemon-") // short
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); os.RemoveAll(dir) })
	return "unix://" + l.Addr().String()
}

// images and networks are JSON. deleted returns the removed ones.
func aDaemon(t *testing.T, images, networks string) (host string, deleted func() []string) {
	var mu sync.Mutex
	var all []string
	host = serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.51")
		w.Header().Set("Content-Type", "application/json")
		_, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		label := r.URL.Query().Get("filters")
		switch {
		case r.Method == http.MethodDelete:
			mu.Lock()
			all = append(all, what)
			mu.Unlock()
			fmt.Fprint(w, "[]")
		case strings.HasSuffix(r.URL.Path, "/_ping"):
			fmt.Fprint(w, "OK")
		case what == "info":
			fmt.Fprint(w, `{"OSType": "linux"}`)
		case what == "images/json" && strings.Contains(label, keptLabel):
			fmt.Fprint(w, images)
		case what == "images/json" && images != "[]" && strings.Contains(label, RunLabel):
			fmt.Fprintf(w, `[{"Id": "sha256:7", "Labels": {%[1]q: %[2]q}},
				{"Id": "sha256:8", "Labels": {%[1]q: %[2]q}, "RepoTags": ["<none>:<none>"]},
				{"Id": "sha256:9", "Labels": {%[1]q: %[3]q}}]`,
				RunLabel, journal.Mark()+"9", journal.Mark())
		case what == "networks" && strings.Contains(label, RunLabel):
			fmt.Fprint(w, networks)
		case strings.HasPrefix(what, "networks/"):
			fmt.Fprint(w, "{}")
		default:
			fmt.Fprint(w, "[]")
		}
	})
	return host, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func TestCleanAsksNoOtherDaemon(t *testing.T) {
	asked := 0
	other := serve(t, func(http.ResponseWriter, *http.Request) { asked++ })
	host, _ := aDaemon(t, "[]", "[]")
	t.Setenv("DOCKER_HOST", host)
	for _, named := range []string{other, "tcp://127.0.0.1:1", "unix:///x;reboot", "\x1b[31m"} {
		dir := t.TempDir()
		file := aJournal(t, dir, journal.Mark()+"9", named, Entry{Network, "toll-x"})
		js, err := openJournals(dir, false)
		if err != nil {
			t.Fatal(err)
		}
		_, kept, err := (&Clean{}).daemon(t.Context(), js)
		js.close()
		var o *otherDaemon
		if asked > 0 || !errors.As(err, &o) || !kept[file] {
			t.Fatalf("%q was asked %d times, kept %v: %v", named, asked, kept, err)
		}
		want := "if you know that daemon, run toll clean with DOCKER_HOST set to it"
		if named == other {
			want = "if you know that daemon: DOCKER_HOST=" + other + " toll clean"
		}
		if o.Hint() != want || strings.ContainsAny(o.Error(), "\x1b\n") {
			t.Errorf("%v, %q, want %q", err, o.Hint(), want)
		}
	}
}

func TestCleanKnowsTheDaemon(t *testing.T) {
	host, _ := aDaemon(t, "[]", "[]")
	link := filepath.Join(t.TempDir(), "docker.sock")
	if err := os.Symlink(strings.TrimPrefix(host, "unix://"), link); err != nil {
		t.Fatal(err)
	}
	if !sameDaemon(host, "unix://"+link) || sameDaemon(host, "unix:///x") ||
		sameDaemon(host, "tcp://x:1") {
		t.Error("the same daemon is another one, or another the same")
	}
}

// Images need the label; of an image with other names only the name goes. One without a name is
// removed by its ID, unless its run is alive.
func TestCleanRemovesOnlyOurImages(t *testing.T) {
	for _, service := range []string{"DOCKER_HOST", "CONTAINER_HOST"} {
		t.Run(service, func(t *testing.T) { removesOurImages(t, service) })
	}
}

func removesOurImages(t *testing.T, service string) {
	t.Setenv("DOCKER_HOST", "unix:///none")
	host, deleted := aDaemon(t, `[{"Id": "sha256:1", "RepoTags": ["127.0.0.1:1/toll:a"]}, {"Id": "sha256:2", "RepoTags": ["127.0.0.1:1/toll:b", "users:2"]},
		{"Id": "sha256:3", "RepoTags": ["bridgetoll:kept"]}]`, "[]")
	t.Setenv(service, host)
	dir := t.TempDir()
	aJournal(t, dir, journal.Mark()+"9", host, Entry{Image, "127.0.0.1:1/toll:a"},
		Entry{Image, "127.0.0.1:1/toll:b"}, Entry{Image, "users:1"}, Entry{Network, "users"})
	js, err := openJournals(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer js.close()
	if _, _, err := (&Clean{}).daemon(t.Context(), js); err != nil {
		t.Error(err)
	}
	got := deleted()
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got,
		[]string{"images/127.0.0.1:1/toll:b", "images/sha256:1", "images/sha256:7",
			"images/sha256:8"}) {
		t.Errorf("removed %q", got)
	}
}

// Only the journal's lock can prove whether the process still runs.
func TestCleanOfTheUnseen(t *testing.T) {
	hidden := strings.Split(journal.Mark(), "/")
	hidden[2] = "pid:[1]"
	mark := strings.Join(hidden, "/")
	host, deleted := aDaemon(t, "[]", fmt.Sprintf(
		`[{"Id": "n1", "Name": "toll-n", "Labels": {%q: %q}}]`, RunLabel, mark))
	t.Setenv("DOCKER_HOST", host)
	clean := func(dir string, others bool) (*Clean, bool) {
		t.Helper()
		js, err := openJournals(dir, others)
		if err != nil {
			t.Fatal(err)
		}
		defer js.close()
		before := len(deleted())
		c := &Clean{}
		if _, _, err := c.daemon(t.Context(), js); err != nil {
			t.Error(err)
		}
		return c, len(deleted()) > before
	}
	dir := t.TempDir()
	c, removed := clean(dir, false)
	if removed || len(c.Left) != 1 || c.Left[0].What != "network toll-n" ||
		c.Left[0].Why != "of a toll that may still run: its process cannot be seen from here" {
		t.Errorf("without a journal: removed %t, left %q", removed, c.Left)
	}
	j, err := NewJournal(dir, "live", mark, host)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Add(Network, "toll-n"); err != nil {
		t.Fatal(err)
	}
	for _, others := range []bool{false, true} {
		if c, removed := clean(dir, others); removed || len(c.Left) > 0 {
			t.Errorf("of a run that lives, others %t: removed %t, left %q", others, removed, c.Left)
		}
	}
	if err := j.Close(); err != nil { // like the death of its run
		t.Fatal(err)
	}
	if c, removed := clean(dir, false); !removed || len(c.Left) > 0 {
		t.Errorf("of a run that died: removed %t, left %q", removed, c.Left)
	}
	if _, removed := clean(t.TempDir(), true); !removed {
		t.Error("--force does not remove it")
	}
}

func TestCleanOfHostileDaemon(t *testing.T) {
	ping := func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Api-Version", "1.51")
		w.Header().Set("Content-Type", "application/json")
		return strings.HasSuffix(r.URL.Path, "_ping")
	}
	const brief = 200 * time.Millisecond
	for _, tt := range []struct {
		want  string
		limit time.Duration
		h     http.HandlerFunc
	}{
		{"clean the Docker daemon at unix://DIR/s: it does not answer within 200ms", brief, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"clean: the Docker daemon at unix://DIR/s did not answer within 200ms", brief, func(w http.ResponseWriter, r *http.Request) {
			if !ping(w, r) {
				<-r.Context().Done()
			}
		}},
		{"clean the Docker daemon at unix://DIR/s: the answer is too long", patience, func(w http.ResponseWriter, r *http.Request) {
			if !ping(w, r) {
				for fmt.Fprint(w, "["); r.Context().Err() == nil; fmt.Fprint(w, "{},") {
				}
			}
		}},
	} {
		host := serve(t, tt.h)
		c := &Clean{limit: tt.limit}
		t.Setenv("DOCKER_HOST", host)
		c.StateDir = t.TempDir()
		_, err := c.Run(t.Context())
		if got := testgolden.Stable(fmt.Sprint(err)); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestCleanOfDaemonThatHangsLater(t *testing.T) {
	dead := journal.Mark() + "9"
	var removals atomic.Int32
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.51")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodDelete:
			removals.Add(1)
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/containers/json"):
			var all []string
			for i := range 5 {
				all = append(
					all, fmt.Sprintf(`{"Id": "c%d", "Names": ["/c%d"], "Labels": {%q: %q}}`, i, i,
						RunLabel, dead))
			}
			fmt.Fprintf(w, "[%s]", strings.Join(all, ","))
		default:
			fmt.Fprint(w, "[]")
		}
	})
	t.Setenv("DOCKER_HOST", host)
	c := &Clean{StateDir: t.TempDir(), limit: 500 * time.Millisecond}
	removed, err := c.Run(t.Context())
	if removals.Load() != 1 || len(removed) > 0 {
		t.Errorf("%d requests, removed %q", removals.Load(), removed)
	}
	if got, want := testgolden.Stable(fmt.Sprint(err)), "clean: remove container c0: "+
		"the Docker daemon at unix://DIR/s did not answer within 500ms"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A daemon may refuse to remove a container whose network another one shares, as Podman does.
func TestCleanRemovesDependentsFirst(t *testing.T) {
	dead := journal.Mark() + "9"
	for _, stuck := range []bool{false, true} {
		var mu sync.Mutex
		there := []string{"server", "client"}
		host := serve(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			w.Header().Set("Api-Version", "1.51")
			w.Header().Set("Content-Type", "application/json")
			name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
			switch {
			case r.Method == http.MethodDelete && !slices.Contains(there, name):
				w.WriteHeader(http.StatusNotFound)
			case r.Method == http.MethodDelete && name == "server" && (stuck || len(there) > 1):
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprint(w, `{"message": "it has dependent containers"}`)
			case r.Method == http.MethodDelete:
				there = slices.DeleteFunc(there, func(c string) bool { return c == name })
			case strings.HasSuffix(r.URL.Path, "/containers/json"):
				var all []string
				for _, c := range there {
					all = append(all,
						fmt.Sprintf(`{"Id": %q, "Names": ["/%s"], "Labels": {%q: %q}}`,
							c, c, RunLabel, dead))
				}
				fmt.Fprintf(w, "[%s]", strings.Join(all, ","))
			default:
				fmt.Fprint(w, "[]")
			}
		})
		t.Setenv("DOCKER_HOST", host)
		c := &Clean{StateDir: t.TempDir()}
		removed, err := c.Run(t.Context())
		want := []string{"container client", "container server"}
		if stuck {
			want = want[:1]
		}
		if !slices.Equal(removed, want) || (err != nil) != stuck ||
			stuck && strings.Count(err.Error(), "dependent") != 1 {
			t.Errorf("stuck %t: removed %q, %v", stuck, removed, err)
		}
	}
}

// Podman writes a registry before toll's tags.
func TestCleanRemovesImagesOfPodman(t *testing.T) {
	for tag, want := range map[string]bool{"bridgetoll:a": true, "docker.io/library/bridgetoll:a": true,
		"localhost/bridgetoll:a": true, "example.org/bridgetoll:a": false, "localhost/users:1": false} {
		host, deleted := aDaemon(t, "[]", "[]")
		api, err := client.New(client.WithHost(host))
		if err != nil {
			t.Fatal(err)
		}
		s := &Sweep{API: api}
		err = s.removeImage(t.Context(), imageapi.Summary{ID: "sha256:1", RepoTags: []string{tag}}, isOurs)
		if got := len(deleted()) == 1; err != nil || got != want {
			t.Errorf("%s: removed %t, %v", tag, got, err)
		}
	}
}

func TestWithoutURL(t *testing.T) {
	err := fmt.Errorf("list: %w; and so on", &url.Error{Op: "Get", URL: "http://%2Fs/v1",
		Err: context.DeadlineExceeded})
	got := withoutURL(err)
	if got.Error() != "list: context deadline exceeded; and so on" ||
		!errors.Is(got, context.DeadlineExceeded) {
		t.Errorf("%v", got)
	}
}
