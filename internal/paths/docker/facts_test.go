package docker

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/firewall"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// facts has keys such as "server port mtu".
type facts map[string]string

type space string

func (s space) run(t *testing.T, command string) string {
	t.Helper()
	return sh(t, "nsenter --net="+string(s)+" bash -c '"+command+"'")
}

func (s space) do(t *testing.T, f func() error) {
	t.Helper()
	ns, err := netns.Join(string(s))
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}

// where has "" for containers without a namespace of their own.
type where struct{ machine, server, client space }

func onDocker(p *path.Path) where {
	w := where{machine: "/proc/self/ns/net"}
	of := func(place path.Place) space {
		// host's containers have the machine's
		if c, ok := place.(contained); ok && p.Spec.Mode != mode.Host {
			return space("/proc/" + strconv.Itoa(c.pid) + "/ns/net")
		}
		return ""
	}
	w.server = of(p.Servers[0].Place)
	if p.Spec.Mode != mode.Shared { // shared's clients have the server's
		w.client = of(p.Clients[0].Place)
	}
	return w
}

func threads(t *testing.T) map[string]space {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]space{}
	for _, task := range tasks {
		file := fmt.Sprintf("/proc/%d/task/%s/ns/net", os.Getpid(), task.Name())
		if ns, err := os.Readlink(file); err == nil { // the thread may have ended
			out[ns] = space(file)
		}
	}
	return out
}

func inLab(t *testing.T, before map[string]space) (w where) {
	t.Helper()
	for ns, s := range threads(t) {
		if _, old := before[ns]; old {
			continue
		}
		addrs := s.run(t, "ip -o -4 addr")
		has := func(a string) bool { return strings.Contains(addrs, " "+a+"/") }
		switch {
		case has("198.18.0.1"):
			w.machine = s
		case has("172.30.0.2"), has("172.17.0.2"), has("198.18.0.10"):
			w.server = s
		case has("172.30.0.3"), has("172.31.0.3"), has("172.17.0.3"), has("198.18.0.11"):
			w.client = s
		}
	}
	if w.machine == "" {
		t.Fatal("the lab's machine is not found")
	}
	return w
}

type device struct {
	Name     string `json:"ifname"`
	Index    int    `json:"ifindex"`
	Peer     int    `json:"link_index"`
	Master   string
	LinkInfo struct {
		Kind string         `json:"info_kind"`
		Data map[string]any `json:"info_data"`
		Port map[string]any `json:"info_slave_data"`
	}
	Addrs []struct {
		Family string
		Local  netip.Addr
	} `json:"addr_info"`
	all  map[string]any
	info link.Info
}

func (s space) devices(t *testing.T) (out []device) {
	t.Helper()
	text := []byte(s.run(t, "ip -j -d addr"))
	var all []map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	s.do(t, func() (err error) {
		for i := range out {
			out[i].all = all[i]
			if out[i].info, err = link.Describe(out[i].Name); err != nil {
				return err
			}
		}
		return nil
	})
	return out
}

func (d device) addr() netip.Addr {
	for _, a := range d.Addrs {
		if a.Family == "inet" {
			return a.Local
		}
	}
	return netip.Addr{}
}

// The attributes decide what devices do with packets.
var attributes = []string{"mtu", "qdisc", "txqlen", "flags", "promiscuity", "allmulti",
	"num_tx_queues", "num_rx_queues",
	"gso_max_size", "gso_max_segs", "gro_max_size", "operstate"}

// These details are names, or change on their own.
var passing = regexp.MustCompile(
	`timer|_id$|^id$|^no$|designated|address|^root|config_pending|topology`)

func (f facts) describe(role string, d device) {
	for _, k := range attributes {
		f[role+" "+k] = fmt.Sprint(d.all[k])
	}
	f[role+" kind"] = d.LinkInfo.Kind
	for k, on := range d.info.Offloads {
		f[role+" offload "+k] = fmt.Sprint(on)
	}
	for k, v := range d.LinkInfo.Data {
		if !passing.MatchString(k) {
			f[role+" "+k] = fmt.Sprint(v)
		}
	}
	for k, v := range d.LinkInfo.Port {
		if !passing.MatchString(k) {
			f[role+" as port "+k] = fmt.Sprint(v)
		}
	}
}

func collect(t *testing.T, p *path.Path, w where) facts {
	t.Helper()
	f := facts{"hops": strings.Join(p.Kinds(), " ")}
	roles := map[string]string{"lo": "lo"}
	found := map[string]device{}
	outside := w.machine.devices(t)
	add := func(role string, is func(device) bool) (device, bool) {
		i := slices.IndexFunc(outside, is)
		if i < 0 {
			return device{}, false
		}
		d := outside[i]
		if roles[d.Name] == "" {
			roles[d.Name] = strings.ReplaceAll(role, " ", "-")
		}
		found[role] = d
		f.describe(role, d)
		return d, true
	}
	add("machine lo", func(d device) bool { return d.Name == "lo" })
	for _, c := range []struct {
		end string
		in  space
	}{{"server", w.server}, {"client", w.client}} {
		if c.in == "" {
			continue
		}
		for _, d := range c.in.devices(t) {
			if d.Name != "lo" && d.Name != inside {
				continue
			}
			found[c.end+" "+d.Name] = d
			f.describe(c.end+" "+d.Name, d)
			if d.LinkInfo.Kind != "veth" {
				continue
			}
			port, ok := add(c.end+" port", func(x device) bool { return x.Index == d.Peer })
			if !ok {
				t.Fatalf("the other end of the %s's pair is not on the machine", c.end)
			}
			add(c.end+" bridge", func(x device) bool { return x.Name == port.Master })
		}
		f.settings(t, c.end, c.in, map[string]string{"lo": "lo", inside: inside})
		f[c.end+" rules"] = rulesWithin(t, c.in)
		f[c.end+" routes"] = strings.TrimSpace(
			address.ReplaceAllString(c.in.run(t, "ip route"), "ADDRESS"))
	}
	f.settings(t, "machine", w.machine, roles)
	f.rules(t, p, w, found)
	return f
}

// rulesWithin omits counts, DNS ports and toll's tags.
func rulesWithin(t *testing.T, in space) string {
	t.Helper()
	var out []string
	for line := range strings.Lines(in.run(t, "nft --stateless list ruleset")) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		if line = taken.ReplaceAllString(line, "PORT"); line != "" && line != "}" {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return strings.Join(out, "; ")
}

var taken = regexp.MustCompile(`\b[0-9]{5}\b`)

var (
	ofDevice = regexp.MustCompile(`^(net\.ipv[46]\.(?:conf|neigh)\.)(.+)\.([a-z0-9_]+)$`)
	// counters and secrets
	alive   = regexp.MustCompile(`nf_conntrack_count|stable_secret|fastopen_key|netdev_rss_key`)
	address = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+(/\d+)?`) // networks' sizes vary
)

func (s space) sysctls(t *testing.T) map[string]string {
	t.Helper()
	const root = "/proc/sys/"
	name := strings.NewReplacer("/", ".", ".", "/") // device names may contain dots
	out := map[string]string{}
	s.do(t, func() error {
		return filepath.WalkDir(root+"net", func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			if b, err := os.ReadFile(file); err == nil { // some can only be written
				out[name.Replace(strings.TrimPrefix(file, root))] = strings.TrimSpace(string(b))
			}
			return nil
		})
	})
	return out
}

func (f facts) settings(t *testing.T, end string, in space, roles map[string]string) {
	t.Helper()
	for key, value := range in.sysctls(t) {
		if alive.MatchString(key) {
			continue
		}
		if m := ofDevice.FindStringSubmatch(key); m != nil && m[2] != "all" && m[2] != "default" {
			role, known := roles[strings.ReplaceAll(m[2], "/", ".")]
			if !known {
				continue
			}
			key = m[1] + role + "." + m[3]
		}
		f[end+" "+key] = value
	}
}

// packet is the first one of a connection.
type packet struct {
	Src, Dst           netip.Addr
	Port               uint16
	In, Out            string
	SrcLocal, DstLocal bool
}

func (p packet) matches(r firewall.Rule) bool {
	device := func(d firewall.Device, is string) bool {
		return d.Name == "" || (d.Name == is) != d.Not
	}
	net := func(n firewall.Net, is netip.Addr) bool {
		return !n.Prefix.IsValid() || n.Prefix.Contains(is) != n.Not
	}
	local := func(l firewall.Local, is bool) bool {
		return l == firewall.Any || (l == firewall.Own) == is
	}
	return r.Unread == "" && device(r.In, p.In) && device(r.Out, p.Out) && net(r.Src, p.Src) &&
		net(r.Dst, p.Dst) && local(r.SrcLocal, p.SrcLocal) && local(r.DstLocal, p.DstLocal) &&
		(r.Proto == "" || r.Proto == "tcp") && (r.Ports.High == 0 ||
		(r.Ports.Low <= p.Port && p.Port <= r.Ports.High) != r.Ports.Not)
}

// compared counts the rules that the packet meets, too. No first packet matches a rule about a
// connection's state.
func (p packet) compared(t *testing.T, all []firewall.Chain, c firewall.Chain) (
	v firewall.Verdict, rules int) {
	for i, r := range c.Rules {
		rules++
		if r.Set && c.Table == bridgesTable {
			r = firewall.Rule{Verdict: firewall.Jump, Chain: p.byMap(c.Name, i)}
		}
		if r.Set || !slices.Contains([]string{"", "ct", "conntrack"}, r.Unread) {
			t.Errorf("%s %s: %s", c.Table, c.Name, r)
		}
		if !p.matches(r) {
			continue
		}
		switch r.Verdict {
		case firewall.Continue:
			continue
		case firewall.Return:
			return firewall.Continue, rules
		case firewall.Jump, firewall.Goto:
			i := slices.IndexFunc(all, func(to firewall.Chain) bool {
				return to.Table == c.Table && to.V4 == c.V4 && to.Name == r.Chain
			})
			if i < 0 {
				continue // a target that changes nothing
			}
			more := 0
			v, more = p.compared(t, all, all[i])
			rules += more
			if v == firewall.Continue && r.Verdict == firewall.Jump {
				continue
			}
			return v, rules
		default:
			return r.Verdict, rules
		}
	}
	return firewall.Continue, rules
}

// byMap returns the chain to which the map of rule i of one of dockerd's own base chains sends the
// packet, if it has the packet's device.
func (p packet) byMap(base string, i int) string {
	return map[string][]string{
		"filter-FORWARD":  {"filter-forward-in__" + p.Out, "filter-forward-out__" + p.In},
		"nat-POSTROUTING": {"nat-postrouting-out__" + p.In, "nat-postrouting-in__" + p.Out},
	}[base][i]
}

// baseOf returns the table and the name that iptables has for a chain, also for those of dockerd's
// own table.
func baseOf(c firewall.Chain) (table, name string) {
	if c.Table != bridgesTable {
		return c.Table, c.Name
	}
	table, name, _ = strings.Cut(c.Name, "-")
	return table, name
}

// rules records each hook's effect on a connection's first packet, and how many rules it met.
func (f facts) rules(t *testing.T, p *path.Path, w where, found map[string]device) {
	t.Helper()
	var all []firewall.Chain
	w.machine.do(t, func() (err error) { all, err = nft.Read(); return err })
	walk := func(hook, what string, packet packet) {
		for _, kind := range []string{"nat", "filter"} {
			does, tried := firewall.Accept, 0
			for _, c := range all {
				table, name := baseOf(c)
				if name != strings.ToUpper(hook) || (table == "nat") != (kind == "nat") ||
					!c.V6 && !packet.Dst.Is4() || !c.V4 && packet.Dst.Is4() {
					continue
				}
				v, rules := packet.compared(t, all, c)
				if v == firewall.Continue && c.Drop {
					v = firewall.Drop
				}
				tried += rules
				if v != firewall.Continue && v != firewall.Accept {
					does = v
				}
			}
			name := fmt.Sprintf("rules %s %s %s", what, kind, hook)
			f[name], f[name+" tried"] = string(does), strconv.Itoa(tried)
		}
	}
	dial := p.Clients[0].Dial
	server, client := found["server "+inside].addr(), found["client "+inside].addr()
	sb, cb := found["server bridge"], found["client bridge"]
	toServer := func(what string, src netip.Addr) {
		walk("output", what, packet{
			Src: src, Dst: server, Port: serverPort, Out: sb.Name, SrcLocal: true})
		walk("postrouting", what, packet{
			Src: src, Dst: server, Port: serverPort, Out: sb.Name, SrcLocal: true})
	}
	toMachine := func(what string) {
		if client.IsValid() {
			walk("prerouting", what, packet{
				Src: client, Dst: dial.Addr(), Port: dial.Port(), In: cb.Name, DstLocal: true})
			return
		}
		walk("output", what, packet{
			Src: dial.Addr(), Dst: dial.Addr(), Port: dial.Port(), Out: "lo", SrcLocal: true,
			DstLocal: true})
	}
	forward := func(what string) {
		walk("forward", what, packet{
			Src: client, Dst: server, Port: serverPort, In: cb.Name, Out: sb.Name})
		walk("postrouting", what, packet{
			Src: client, Dst: server, Port: serverPort, Out: sb.Name})
	}
	m := p.Spec.Mode
	published := m == mode.PublishNAT || m == mode.PublishProxy || m == mode.Publish ||
		m == mode.PublishDefault
	switch {
	case m == mode.Native || m == mode.Host:
		toMachine("of the client")
	case published && len(p.Proxies) > 0:
		toMachine("of the client")
		toServer("of the proxy", sb.addr())
	case published && client.IsValid():
		toMachine("of the client")
		forward("translated")
	case published:
		toMachine("of the client")
		toServer("translated", dial.Addr())
	case sb.Name == "": // not visible to the machine
	case client.IsValid(): // routed, or switched and seen by br_netfilter
		walk("prerouting", "of the client",
			packet{Src: client, Dst: server, Port: serverPort, In: cb.Name})
		forward("of the client")
	default:
		toServer("of the client", sb.addr())
	}
}
