package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const asUser = "REPLICA_TEST_USER"

// self runs a test of this program in another process, which gets input.
func self(test string, input any) (*exec.Cmd, error) {
	b, err := json.Marshal(input)
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+test+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), asUser+"=yes")
	cmd.Stdin = bytes.NewReader(b)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, err
}

// A user without privileges builds the copy of another machine.
func TestUser(t *testing.T) {
	if os.Getenv(asUser) != "" {
		var m replica.Machine
		if err := json.NewDecoder(os.Stdin).Decode(&m); err != nil {
			t.Fatal(err)
		}
		s := &site{t: t}
		r := s.start(&m, socket(1, "0.0.0.0:80"))
		a := s.dial(r, replica.Client{Card: "eth0"}, "192.0.2.10:8080")
		if len(a.Outcomes) != 1 || a.Outcomes[0].Socket != 0 {
			t.Errorf("%+v", a)
		}
		ports, err := r.Scan(t.Context(), fromCard)
		if err != nil || len(ports[0]) != 1 {
			t.Errorf("%d %v", ports, err)
		}
		return
	}
	s := newSite(t)
	s.in(s.spaces[0], "iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80")
	s.in(s.spaces[0], "iptables -A FORWARD -m addrtype --src-type LOCAL -j DROP")
	cmd, err := self("TestUser", s.machine())
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if out, err := cmd.CombinedOutput(); err != nil || !testgolden.HasLine(string(out), "PASS") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// children returns the processes that pid started.
func children(t *testing.T, pid int) (out []int) {
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		for _, word := range strings.Fields(string(b)) {
			n, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, n)
		}
	}
	return out
}

func TestKilledParent(t *testing.T) {
	if os.Getenv(asUser) != "" {
		var m replica.Machine
		if err := json.NewDecoder(os.Stdin).Decode(&m); err != nil {
			t.Fatal(err)
		}
		for {
			s := &site{t: t}
			s.start(&m).Close()
		}
	}
	m := newSite(t).machine()
	for i := range 10 {
		cmd, err := self("TestKilledParent", m)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var copies []int
		testwait.Until(t, time.Minute, "it started a copy", func() bool {
			copies = children(t, cmd.Process.Pid)
			return len(copies) > 0
		})
		time.Sleep(time.Duration(i*i) * time.Millisecond) // to kill it at different points
		copies = append(copies, children(t, cmd.Process.Pid)...)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for _, pid := range copies {
			testwait.Until(t, time.Minute, "the copy ended", func() bool {
				b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
				return err != nil || strings.Contains(string(b), ") Z ")
			})
		}
	}
}

func TestKilledCopy(t *testing.T) {
	s := newSite(t)
	r := s.start(s.machine(), socket(0, "0.0.0.0:80"))
	for _, pid := range children(t, os.Getpid()) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err == nil && strings.HasSuffix(string(b), "\x00"+replica.Arg+"\x00") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	dials := []replica.Dial{{Proto: "tcp", To: netip.MustParseAddrPort("127.0.0.1:80")}}
	for range 2 {
		if _, err := r.Dial(t.Context(), dials); err == nil {
			t.Error("a killed copy answers")
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
