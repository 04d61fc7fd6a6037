package local

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// A machine with a bridge, and a container on it.
type bridged struct {
	host, container *netns.NS
	bridge          string
}

const port = "veth1a2b3c4"

func newBridged(t *testing.T, bridge string) bridged {
	t.Helper()
	b := bridged{netnstest.New(t), netnstest.New(t), bridge}
	tid, err := b.container.TID()
	if err == nil {
		err = b.host.Do(func() error { return made(port, bridge, tid) })
	}
	if err == nil {
		err = b.container.Do(func() error { return link.Up("eth0") })
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func made(port, bridge string, tid int) error {
	for _, f := range []func() error{
		func() error { return link.AddBridge(bridge) },
		func() error { return link.AddVeth(port, "eth0", tid) },
		func() error { return link.SetMaster(port, bridge) },
		func() error { return link.Up(bridge) },
		func() error { return link.Up(port) },
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// tune sets what toll advise sets while it measures a lever.
func (b bridged) tune(t *testing.T, tunes mode.Tunes) {
	t.Helper()
	all := Tuned{}
	p := &path.Path{Spec: path.Spec{Tune: tunes}, Hops: []path.Hop{
		all.MadeOf(path.Hop{Kind: mode.HopBridge, Name: b.bridge},
			TunedDevice{Space: b.host, Name: b.bridge}),
		all.MadeOf(path.Hop{Kind: mode.HopVeth, Name: "eth0"},
			TunedDevice{Space: b.container, Name: "eth0", Inside: true},
			TunedDevice{Space: b.host, Name: port})}}
	if err := all.Tune(p, nil); err != nil {
		t.Fatal(err)
	}
}

// settings returns what levers set of the machine's devices and the container's.
func (b bridged) settings(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, in := range map[string]*netns.NS{b.bridge: b.host, port: b.host, "eth0": b.container} {
		err := in.Do(func() error {
			sizes, err := link.MaxSizes(name)
			if err != nil {
				return err
			}
			info, err := link.Describe(name)
			if err != nil {
				return err
			}
			out[name] = fmt.Sprint(sizes, info.Offloads)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		out[name] += script(t, in, "cd /sys/class/net/"+name+
			" && grep . threaded queues/*/rps_cpus queues/*/xps_cpus 2>/dev/null || true", nil)
	}
	return out
}

// script returns what a shell prints in the namespace, with a sysfs of its own.
func script(t *testing.T, in *netns.NS, text string, env []string) string {
	t.Helper()
	cmd := exec.Command("unshare", "-m", "sh", "-c", "mount -t sysfs s /sys\n"+text)
	cmd.Env = append(os.Environ(), env...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := in.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || said.Len() > 0 {
		t.Errorf("%s\n%v\n%s", text, err, said.String())
	}
	return out.String()
}

// What is printed to keep a lever sets what was measured, on both ends of the pair.
func TestWhatKeepsLevers(t *testing.T) {
	for _, program := range []string{"ip", "ethtool", "nsenter", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			pathtest.SkipOrFail(t, "%v", err)
		}
	}
	tried := 0
	for _, name := range lever.Names() {
		l, _ := lever.Find(name)
		for engine, bridge := range map[string]string{"docker": "br-0123456789ab", "podman": "podman1"} {
			own := l
			if engine == "podman" {
				own = l.OfPodman()
			}
			var lines []string
			for _, s := range own.At(mode.Bridge, lever.Host{CPUs: 2}).Permanent {
				if text := strings.Join(s.Lines, "\n"); strings.Contains(text, "$") &&
					!strings.HasPrefix(text, "#!") {
					lines = append(lines, text)
				}
			}
			v, ok := l.With(mode.Bridge, lever.Host{CPUs: 2})
			if len(lines) == 0 || !ok || v.Tune == "" {
				continue
			}
			tried++
			t.Run(name+" "+engine, func(t *testing.T) {
				if text := strings.Join(lines, "\n"); !known(text) {
					t.Skip("ip lacks gso_ipv4_max_size (iproute2 6.3)")
				}
				b, want := newBridged(t, bridge), newBridged(t, bridge)
				for _, x := range v.Tune.List() {
					if err := netnstest.New(t).Do(func() error { return TryTune(x.Key) }); err != nil {
						t.Skip(err)
					}
					if x.Key == mode.Queues { // which udev sets
						b.tune(t, mode.Tunes("queues="+x.Value))
					}
				}
				before := b.settings(t)
				script(t, b.host, strings.Join(lines, "\n"), shims(t, engine, b.container))
				want.tune(t, v.Tune)
				got, measured := b.settings(t), want.settings(t)
				if !reflect.DeepEqual(got, measured) || reflect.DeepEqual(got, before) {
					for _, device := range slices.Sorted(maps.Keys(got)) {
						t.Errorf("%s: %s, want %s", device, got[device], measured[device])
					}
				}
			})
		}
	}
	if tried < 2*len([]string{"bigtcp", "bigtcp-container", "threaded-napi", "xps", "rps"}) {
		t.Errorf("only %d were tried", tried)
	}
}

// known reports whether the ip program has the options of a script.
func known(script string) bool {
	const option = "gso_ipv4_max_size"
	if !strings.Contains(script, option) {
		return true
	}
	help, _ := exec.Command("ip", "link", "help").CombinedOutput()
	return bytes.Contains(help, []byte(option))
}

// shims returns an environment with a sudo, and an engine that knows one container.
func shims(t *testing.T, engine string, container *netns.NS) []string {
	t.Helper()
	tid, err := container.TID()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"sudo": `exec "$@"`,
		engine: fmt.Sprintf("echo %d", tid)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"),
			0o755); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
}
