package bigtcp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "churn" {
		churn(Store(os.Args[2]))
	}
	os.Exit(m.Run())
}

func churn(s Store) {
	for {
		st, err := s.Load()
		if errors.Is(err, ErrNone) {
			st, err = &State{}, nil
		}
		if err == nil {
			_, err = s.Apply(st, []int{2, 4, 6})
		}
		if err == nil {
			_, err = s.Apply(st, nil)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// inNetwork has a bridge, number 2, with the ports 4 and 6.
func inNetwork(t *testing.T, f func()) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		if os.Getenv("CI") == "true" {
			t.Fatalf("network namespaces need root here: %v", err)
		}
		t.Skipf("network namespaces need root here: %v", err)
	}
	if err := Supported(); errors.Is(err, errNoIPv4) {
		t.Skip(err)
	}
	for _, do := range []func() error{
		func() error { return link.AddBridge("br") },
		func() error { return link.AddVeth("a", "a0", unix.Gettid()) },
		func() error { return link.AddVeth("b", "b0", unix.Gettid()) },
		func() error { return link.SetMaster("a", "br") },
		func() error { return link.SetMaster("b", "br") },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	f()
}

func sizes(t *testing.T) map[string]link.Sizes {
	t.Helper()
	all, err := link.AllSizes()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]link.Sizes{}
	for _, l := range all {
		out[l.Name] = l.Sizes
	}
	return out
}

func indexes(t *testing.T, names ...string) (out []int) {
	t.Helper()
	all, err := link.AllSizes()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		for _, l := range all {
			if l.Name == n {
				out = append(out, l.Index)
			}
		}
	}
	return out
}

func apply(t *testing.T, s Store, st *State, want ...string) Outcome {
	t.Helper()
	out, err := s.Apply(st, indexes(t, want...))
	if err != nil || len(out.Failed) > 0 {
		t.Fatalf("%v: %v, %v", want, err, out.Failed)
	}
	noted, err := s.Load()
	if err != nil || !reflect.DeepEqual(noted.Links, append([]Link{}, st.Links...)) &&
		len(st.Links)+len(noted.Links) > 0 {
		t.Fatalf("noted is %+v, %v, and not %+v", noted, err, st)
	}
	return out
}

func each(n uint32) link.Sizes { return link.Sizes{n, n, n, n} }

func TestRaisedAndTakenBack(t *testing.T) {
	inNetwork(t, func() {
		s, st := Store(t.TempDir()), &State{}
		err := link.SetSizes(indexes(t, "b")[0], link.Sizes{300000, 65536, 300000, 40000})
		if err != nil {
			t.Fatal(err)
		}
		before := sizes(t)
		apply(t, s, st, "br", "a", "b")
		now := sizes(t)
		if now["br"] != each(Size) || now["a"] != each(Size) ||
			now["b"] != (link.Sizes{300000, Size, 300000, Size}) ||
			now["a0"] != before["a0"] || now["lo"] != before["lo"] {
			t.Errorf("raised: %v", now)
		}
		out := apply(t, s, st, "br", "a", "b")
		if len(out.Raised)+len(out.Lowered)+len(out.Kept) != 0 {
			t.Errorf("raised again: %+v", out)
		}
		if out := apply(t, s, st, "br", "a"); fmt.Sprint(out.Lowered) != "[b]" ||
			sizes(t)["b"] != before["b"] {
			t.Errorf("only one is taken back: %+v, %v", out, sizes(t))
		}
		apply(t, s, st, "br", "a", "b")
		theirs := link.Sizes{Size, Size, 100000, Size}
		err = errors.Join(link.SetSizes(indexes(t, "a")[0], theirs),
			link.SetSizes(indexes(t, "br")[0], before["br"]), link.Remove("b"))
		if err != nil {
			t.Fatal(err)
		}
		if out := apply(t, s, st, "br", "a"); len(out.Raised) != 0 || sizes(t)["a"] != theirs ||
			sizes(t)["br"] != before["br"] {
			t.Errorf("what others set is theirs: %+v, %v", out, sizes(t))
		}
		out = apply(t, s, st)
		if now := sizes(t); fmt.Sprint(out.Kept) != "[a]" ||
			now["a"] != (link.Sizes{65536, 65536, 100000, 65536}) || now["br"] != before["br"] {
			t.Errorf("taken back: %+v, %v", out, now)
		}
		if err := s.Drop(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
	})
}

func TestRefusedByKernel(t *testing.T) {
	inNetwork(t, func() {
		err := errors.Join(link.AddVXLAN(link.VXLAN{Name: "vx", VNI: 7, Port: 4789, MTU: 1450}),
			link.SetMaster("vx", "br"))
		if err != nil {
			t.Fatal(err)
		}
		before := sizes(t)
		s, st := Store(t.TempDir()), &State{}
		out, err := s.Apply(st, indexes(t, "br", "a"))
		if err != nil || out.Failed["br"] == nil || fmt.Sprint(out.Raised) != "[a]" ||
			sizes(t)["br"] != before["br"] {
			t.Errorf("%+v, %v, %v", out, err, sizes(t))
		}
		if apply(t, s, st); !reflect.DeepEqual(sizes(t), before) {
			t.Errorf("taken back: %v", sizes(t))
		}
	})
}

func TestKilledAtAnyMoment(t *testing.T) {
	inNetwork(t, func() {
		before, dir := sizes(t), t.TempDir()
		s := Store(dir)
		left := 0
		for range 40 {
			cmd := exec.Command("/proc/self/exe", "churn", dir)
			cmd.Stdout = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(5+rand.IntN(25)) * time.Millisecond)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			st, err := s.Load()
			if errors.Is(err, ErrNone) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(sizes(t), before) {
				left++
			}
			apply(t, s, st)
			if now := sizes(t); !reflect.DeepEqual(now, before) {
				t.Fatalf("left: %v, before: %v", now, before)
			}
		}
		t.Logf("%d of 40 left links raised", left)
	})
}

func TestUnreadableAndOldNotes(t *testing.T) {
	dir := t.TempDir()
	s := Store(filepath.Join(dir, "run"))
	if _, err := s.Load(); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	st := &State{Ports: []uint16{80}, Netns: 7}
	st.Renew(time.Hour)
	if err := s.Save(st); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load()
	if err != nil || got.Lease() <= 59*time.Minute || got.Netns != 7 || len(got.Ports) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	file := filepath.Join(string(s), stateFile)
	if err := os.WriteFile(file, []byte(`{"boot":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load(); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("one that was cut short: %+v, %v", got, err)
	}
	err = errors.Join(s.Drop(), os.WriteFile(
		file, []byte(`{"boot":"another","links":[{}]}`), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}
