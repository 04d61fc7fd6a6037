package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	kernelwrites "github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/testing/gatewaytest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// capturing returns a toll for a test that needs the evidence of captured packets, or skips it.
func capturing(t *testing.T) (bin string) {
	t.Helper()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	return binary(t)
}

// Of two routes to one server, each of which stalls in a relay of its own, each relay is named. No
// route is the steady one, and the server is not to blame.
func TestStreamNamesEachRelay(t *testing.T) {
	bin := capturing(t)
	m := startLLM(t, nil)
	const most = 60 * time.Millisecond
	routes := map[string]string{"a": startRelay(t, m.Listener.Addr().String(), 5, most),
		"b": startRelay(t, m.Listener.Addr().String(), 6, most)}
	testwait.Unhindered(t, 2*patience, func(u testing.TB) {
		r := startToll(t, bin, nil, "stream", "a="+routes["a"], "b="+routes["b"], "--tokens", "8",
			"--rounds", "6", "--quiet")
		if code, _ := r.wait(t, 2*patience); code != exitOK {
			t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
		}
		out := strings.Join(strings.Fields(r.out.String()), " ")
		for name, url := range routes {
			port := url[strings.LastIndex(url, ":")+1:]
			if want := fmt.Sprintf("The relay [^:]* at port %s, over %s: ", port, name); !regexp.
				MustCompile(want).MatchString(out) {
				u.Errorf("no %q in\n%s", want, r.out.String())
			}
		}
		for _, no := range []string{"The model", "The network", "Neither"} {
			if strings.Contains(out, no) {
				u.Errorf("%q is in\n%s", no, r.out.String())
			}
		}
	})
}

// HAProxy may ask servers over HTTP/2: the tokens of each request on its connections are followed.
func TestStreamThroughHTTP2(t *testing.T) {
	bin := capturing(t)
	const n = 8
	var others atomic.Int64 // requests for tokens over another version
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"data":[{"id":"tiny"}]}`)
			return
		}
		if r.ProtoMajor != 2 {
			others.Add(1)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range n {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%d \"}}]}\n\n", i)
			_ = http.NewResponseController(w).Flush() // the client may have gone
			time.Sleep(5 * time.Millisecond)
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	for _, g := range gatewaytest.All {
		if g.Program != "HAProxy" {
			continue
		}
		at := g.Start(t, g.Installed(t), g.HTTP2.Text, server.Listener.Addr().String())
		testwait.Unhindered(t, 2*patience, func(u testing.TB) {
			r := startToll(t, bin, nil, "stream", "gateway=http://"+at, "--tokens", "8", "--sessions", "3",
				"--rounds", "4", "--quiet", "--details")
			if code, _ := r.wait(t, 2*patience); code != exitOK {
				t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
			}
			want := regexp.MustCompile(`Seen from the server \(\S+ at port \d+\) on: (\d+) of (\d+) tokens`)
			got := want.FindStringSubmatch(r.out.String())
			if len(got) == 0 || got[1] != got[2] || !strings.Contains(r.out.String(), "  relays  ") {
				u.Errorf("%q in\n%s", got, r.out.String())
			}
		})
	}
	if n := others.Load(); n > 0 {
		t.Errorf("%d requests were not over HTTP/2", n)
	}
}

// held has what a process has in the kernel: BPF links, programs and maps by their IDs, and packet
// sockets, each with its ring, by their inodes.
type held struct {
	links, programs, maps []uint32
	sockets               []string
}

func heldBy(pid int) (h held) {
	of := func(name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }
	infos, _ := filepath.Glob(of("fdinfo/*"))
	for _, f := range infos {
		b, _ := os.ReadFile(f)
		for line := range strings.Lines(string(b)) {
			name, value, _ := strings.Cut(line, ":")
			var id uint32
			if _, err := fmt.Sscan(value, &id); err != nil {
				continue
			}
			switch name {
			case "link_id":
				h.links = append(h.links, id)
			case "prog_id":
				h.programs = append(h.programs, id)
			case "map_id":
				h.maps = append(h.maps, id)
			}
		}
	}
	fds, _ := filepath.Glob(of("fd/*"))
	for _, inode := range packetSockets(of("net/packet")) {
		for _, fd := range fds {
			if to, _ := os.Readlink(fd); to == "socket:["+inode+"]" {
				h.sockets = append(h.sockets, inode)
			}
		}
	}
	return h
}

// packetSockets returns the inodes of a list in /proc.
func packetSockets(file string) (inodes []string) {
	b, _ := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		if words := strings.Fields(line); len(words) > 0 {
			inodes = append(inodes, words[len(words)-1])
		}
	}
	return inodes
}

// left returns what there still is.
func (h held) left() (out []string) {
	still := func(kind string, id any, err error) {
		if !errors.Is(err, os.ErrNotExist) {
			out = append(out, fmt.Sprintf("%s %v: %v", kind, id, err))
		}
	}
	for _, id := range h.links {
		l, err := link.NewFromID(link.ID(id))
		if err == nil {
			_ = l.Close()
		}
		still("link", id, err)
	}
	for _, id := range h.programs {
		p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
		_ = p.Close()
		still("program", id, err)
	}
	for _, id := range h.maps {
		m, err := ebpf.NewMapFromID(ebpf.MapID(id))
		_ = m.Close()
		still("map", id, err)
	}
	for _, inode := range packetSockets("/proc/net/packet") {
		for _, had := range h.sockets {
			if inode == had {
				still("packet socket", inode, nil)
			}
		}
	}
	return out
}

// A toll that is killed while it captures leaves nothing, and the next one works.
func TestKillStream(t *testing.T) {
	bin := capturing(t)
	m := startLLM(t, nil)
	relay := startRelay(t, m.Listener.Addr().String(), 5, 2*time.Millisecond)
	dir, file := openDir(t), filepath.Join(openDir(t), "run.jsonl")
	t.Setenv("TMPDIR", dir)
	before := filesIn(t)
	stream := func(rounds string) *tollRun {
		return startToll(t, bin, nil, "stream", "a="+m.URL, "b="+relay, "--tokens", "8", "--rounds",
			rounds, "--save", file, "--force", "--details")
	}
	r := stream("1000")
	awaitVisits(t, file, 3)
	had := heldBy(r.cmd.Process.Pid)
	if err := r.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.wait(t, patience)
	recorder, err := kernelwrites.Open(kernelwrites.Of{Local: []uint16{1}})
	if err == nil {
		err = recorder.Close()
	}
	if len(had.sockets) == 0 ||
		err == nil && (len(had.links) == 0 || len(had.programs) == 0 || len(had.maps) == 0) {
		t.Fatalf("it captured nothing: %+v", had)
	}
	t.Logf("it had %+v", had)
	r.gone(t)
	nothingMore(t, before, filesIn)
	testwait.Until(t, patience, "what it had in the kernel is gone", func() bool {
		return len(had.left()) == 0
	})
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
	testwait.Unhindered(t, 2*patience, func(u testing.TB) {
		r = stream("2")
		code, _ := r.wait(t, patience)
		if out := r.out.String(); code != exitOK || !strings.Contains(out, "Seen from the server (") {
			u.Errorf("exit code %d\n%s\n%s", code, r.errOut.String(), out)
		}
		r.gone(t)
	})
}
