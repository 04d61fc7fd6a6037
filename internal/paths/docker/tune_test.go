package docker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

func TestTunesOfTheMachine(t *testing.T) {
	const (
		outside    = " outside containers, where some ends of the connections are"
		tcp        = "TCP settings" + outside
		congestion = "the congestion control" + outside
		lo         = "a loopback device that is not toll's"
		theirs     = "the engine's default bridge"
	)
	would := func(what string) string {
		return " would change " + what + ", which toll does not do"
	}
	for _, tt := range []struct {
		mode   mode.Name
		from   mode.Placement
		to     mode.Target
		tune   mode.Tunes
		reason string // behind the tune; "": it is toll's own
	}{
		{mode.Bridge, mode.FromContainer, mode.ToContainer,
			"mtu=4000+rmem=16M+wmem=16M+gro=on+threaded=on+bigtcp=180000+congestion=reno", ""},
		{mode.Bridge, mode.FromHost, mode.ToContainer, "bigtcp=180000+congestion=reno+rps=on", ""},
		{mode.Bridge, mode.FromHost, mode.ToContainer, "rmem=16M", would(tcp)},
		{mode.Shared, mode.FromContainer, mode.ToLoopback, "bigtcp-lo=180000+rmem=16M", ""},
		{mode.Host, mode.FromHost, mode.ToLoopback, "bigtcp-lo=180000", would(lo)},
		{mode.Host, mode.FromContainer, mode.ToLoopback, "wmem=16M", would(tcp)},
		{mode.Native, mode.FromHost, mode.ToLoopback, "congestion=reno", would(congestion)},
		{mode.PublishProxy, mode.FromHost, mode.ToLoopback, "rps=on", would(lo)},
		{mode.PublishProxy, mode.FromHost, mode.ToLoopback, "gro=on", ""},
		{mode.RootlessPublish, mode.FromHost, mode.ToLoopback, "mtu=65520", ""},
		{mode.RootlessPublishNAT, mode.FromHost, mode.ToAddress, "mtu=65520", ""},
		{mode.RootlessPublish, mode.FromHost, mode.ToLoopback, "tso=off", would(lo)},
		{mode.PublishProxy, mode.FromContainer, mode.ToAddress, "congestion=reno", would(congestion)},
		{mode.PublishNAT, mode.FromHost, mode.ToAddress, "congestion=reno", would(congestion)},
		{mode.PublishNAT, mode.FromContainer, mode.ToAddress, "congestion=reno+wmem=16M", ""},
		{mode.Fast, mode.FromHost, mode.ToLoopback, "congestion=reno+bigtcp=180000", ""},
		{mode.BridgeDefault, mode.FromContainer, mode.ToContainer, "bigtcp=180000", would(theirs)},
		{mode.BridgeDefault, mode.FromContainer, mode.ToContainer,
			"bigtcp-container=180000+congestion=reno", ""},
		{mode.BridgeDefault, mode.FromHost, mode.ToContainer, "congestion=reno", would(congestion)},
		{mode.Link, mode.FromContainer, mode.ToContainer, "mtu=9000", would(theirs)},
		{mode.Overlay, mode.FromContainer, mode.ToContainer, "bigtcp=180000",
			": on a bridge, the kernel permits no larger packets than on its VXLAN port"},
		{mode.Bridge, mode.FromContainer, mode.ToContainer, "bridge-nf=off", ""},
		{mode.BridgeDefault, mode.FromContainer, mode.ToContainer, "bridge-nf=off", would(theirs)},
		{mode.Bridge, mode.FromHost, mode.ToContainer, "threaded=on",
			" has no effect: a veth pair has no NAPI without gro=on"},
	} {
		t.Run(strings.Join([]string{string(tt.mode), string(tt.from), string(tt.tune)}, "-"),
			func(t *testing.T) {
				m, _ := mode.Find(tt.mode)
				if _, ok := m.Route(tt.from, tt.to); !ok {
					t.Fatal("there is no such route")
				}
				err := (&Docker{}).refuse(path.Spec{
					Mode: tt.mode, From: tt.from, To: tt.to, Tune: tt.tune})
				var u *machine.UnsupportedError
				switch {
				case tt.reason == "" && err != nil, tt.reason != "" &&
					(!errors.As(err, &u) || u.Missing != string(tt.tune)+tt.reason || u.Remedy == ""):
					t.Errorf("%q, want %q", err, string(tt.tune)+tt.reason)
				}
			})
	}
}

type tunedAt struct {
	in   space
	name string
}

// show prints what tunes set of the device $0, from a sysfs of its namespace.
const show = `mount -t sysfs sysfs /mnt; cd /mnt/class/net/$0; echo mtu=$(cat mtu); echo queues=$(ls queues); echo threaded=$(cat threaded)
echo rps=$(cat queues/rx-0/rps_cpus); echo xps=$(cat queues/tx-0/xps_cpus 2>/dev/null)`

func (d tunedAt) truth(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("nsenter", "--net="+string(d.in), "unshare", "-m", "sh", "-c", show,
		d.name).Output()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for line := range strings.Lines(string(out)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		if strings.HasSuffix(k, "ps") { // a mask of CPUs
			v = fmt.Sprint(strings.Trim(v, "0,") != "")
		}
		said[k] = v
	}
	d.in.do(t, func() error {
		sizes, err := link.MaxSizes(d.name)
		if err != nil {
			return err
		}
		info, err := link.Describe(d.name)
		said["sizes"], said["gro"], said["tso"] = fmt.Sprint(sizes),
			fmt.Sprint(info.Offloads["gro"]), fmt.Sprint(info.Offloads["tso"])
		return err
	})
	return said
}

// Tunes must not outlive toll's own things.
func TestBesideTunes(t *testing.T) {
	daemon(t)
	b := &Docker{}
	defer b.Close()
	const here = space("/proc/self/ns/net")
	const ofMachine = "sysctl -a 2>/dev/null | grep -E \"tcp_(rmem|wmem|congestion)\"; ip -d " +
		"link show lo; ip -d link show docker0 | sed -E \"s/[a-z_]+_timer +[0-9.]+//g\"; " +
		"ip route show default; ip route show dev docker0"
	build := func(t *testing.T, spec path.Spec) *path.Path {
		t.Helper()
		if err := b.Check(t.Context(), spec); err != nil {
			pathtest.SkipOrFail(t, "%s: %v", spec, err)
		}
		p, err := b.Build(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	says := func(t *testing.T, in space, sysctl, want string) {
		t.Helper()
		if got := strings.Join(strings.Fields(in.run(t, "sysctl -n "+sysctl)), " "); got != want {
			t.Errorf("%s is %q, want %q", sysctl, got, want)
		}
	}
	before := here.run(t, ofMachine)
	links := here.run(t, "ip -br link | wc -l")
	t.Run("containers", func(t *testing.T) {
		p := build(t, path.Spec{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToContainer,
			Tune: "mtu=4000+rmem=16M+wmem=8k+queues=2+gro=on+tso=off+rps=on+threaded=on+xps=on+bigtcp=180000+bigtcp-container=131072+congestion=reno"})
		defer p.Close()
		w := onDocker(p)
		pair := map[string]string{"mtu": "4000", "gro": "true", "tso": "false",
			"queues": "rx-0 rx-1 tx-0 tx-1", "threaded": "1", "rps": "true", "xps": "true"}
		same := func(d tunedAt, size string, want map[string]string) {
			t.Helper()
			is := d.truth(t)
			if is["sizes"] != "["+strings.TrimSpace(strings.Repeat(size+" ", 4))+"]" {
				t.Errorf("sizes of %s: %s", d.name, is["sizes"])
			}
			for k, v := range want {
				if is[k] != v {
					t.Errorf("%s of %s: %q, want %q", k, d.name, is[k], v)
				}
			}
		}
		for _, place := range []path.Place{p.Servers[0].Place, p.Clients[0].Place} {
			box := place.(contained).box
			same(tunedAt{space("/proc/" + strconv.Itoa(box.pid) + "/ns/net"), inside}, "131072",
				pair)
			same(tunedAt{here, box.port}, "180000", pair)
			mounts, err := os.ReadFile("/proc/" + strconv.Itoa(box.pid) + "/mountinfo")
			if i := strings.Index(string(mounts), " - sysfs sysfs ro"); err != nil || i < 0 {
				t.Errorf("the container's sysfs was left as it should not be: %v\n%s", err, mounts)
			}
		}
		bridge := strings.TrimSpace(here.run(t, "ls /sys/class/net | grep ^br-"))
		same(tunedAt{here, bridge}, "180000", map[string]string{"mtu": "4000"})
		for _, in := range []space{w.server, w.client} {
			says(t, in, "net.ipv4.tcp_rmem", "4096 131072 16777216")
			says(t, in, "net.ipv4.tcp_wmem", "4096 8192 8192")
			says(t, in, "net.ipv4.tcp_congestion_control", "reno")
		}
		if now := here.run(t, ofMachine); now != before {
			t.Errorf("the machine was\n%sand is\n%s", before, now)
		}
		pathtest.CarriesTwice(t, p)
	})
	t.Run("machine", func(t *testing.T) {
		p := build(t, path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer,
			Tune: "bigtcp=180000+congestion=reno"})
		defer p.Close()
		addr := p.Clients[0].Dial.Addr().String()
		if got := here.run(t, "ip route get "+addr+"; ip route show match "+addr); !strings.Contains(got, "congctl reno") {
			t.Errorf("the way there: %s", got)
		}
		says(t, onDocker(p).server, "net.ipv4.tcp_congestion_control", "reno")
		if now := here.run(t, ofMachine); now != before {
			t.Errorf("the machine was\n%sand is\n%s", before, now)
		}
		pathtest.CarriesTwice(t, p)
	})
	t.Run("shared", func(t *testing.T) {
		p := build(t, path.Spec{Mode: mode.Shared, From: mode.FromContainer, To: mode.ToLoopback,
			Tune: "bigtcp-lo=180000"})
		defer p.Close()
		if got := (tunedAt{onDocker(p).server, "lo"}).truth(t)["sizes"]; got != "[180000 180000 180000 180000]" {
			t.Errorf("lo of the container: %s", got)
		}
	})
	if now := here.run(t, ofMachine); now != before || here.run(t, "ip -br link | wc -l") != links {
		t.Errorf("the machine was\n%sand is\n%s\n%s", before, now, here.run(t, "ip -br link"))
	}
}
