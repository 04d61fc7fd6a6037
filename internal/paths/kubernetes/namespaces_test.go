package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

const ofNamespaces = "BRIDGETOLL_TEST_KUBERNETES"

// plugin has shell commands: N is a node's number, O the other's, P a pod's number.
type plugin struct{ node, pod string }

var testPlugins = map[string]plugin{
	// CNI's bridge, with routes between the nodes.
	"bridge": {onBridge + `ip -n nN route add 10.97.O.0/24 via 192.0.2.O`, bridgedPod},
	// Flannel.
	"vxlan": {onBridge + `
		ip -n nN link add flannel.1 address 02:00:00:00:00:0N mtu 1450 type vxlan id 1 dev eth0 local 192.0.2.N dstport 8472 nolearning
		ip -n nN addr add 10.97.N.0/32 dev flannel.1
		ip -n nN link set flannel.1 up
		ip -n nN neigh add 10.97.O.0 lladdr 02:00:00:00:00:0O dev flannel.1
		bridge -n nN fdb add 02:00:00:00:00:0O dev flannel.1 dst 192.0.2.O
		ip -n nN route add 10.97.O.0/24 via 10.97.O.0 dev flannel.1 onlink`, bridgedPod},
	// Calico without a tunnel.
	"routed": {`ip -n nN route add 10.97.O.0/24 via 192.0.2.O`, `
		ip -n nN link add caliP type veth peer name eth0 netns pP
		ip -n nN link set caliP up
		ip netns exec nN sh -c 'echo 1 >/proc/sys/net/ipv4/conf/caliP/proxy_arp'
		ip -n pP addr add 10.97.N.P/32 dev eth0
		ip -n pP link set eth0 up
		ip -n pP route add 169.254.1.1 dev eth0
		ip -n pP route add default via 169.254.1.1
		ip -n nN route add 10.97.N.P dev caliP`},
}

const (
	onBridge = `
		ip -n nN link add cni0 type bridge
		ip -n nN addr add 10.97.N.1/24 dev cni0
		ip -n nN link set cni0 up
		`
	bridgedPod = `
		ip -n nN link add vethP type veth peer name eth0 netns pP
		ip -n nN link set vethP master cni0 up
		ip -n pP addr add 10.97.N.P/24 dev eth0
		ip -n pP link set eth0 up
		ip -n pP route add default via 10.97.N.1`
	// Default routes lead to a missing router.
	machines = `
		ip netns add nN
		ip -n nN link set lo up
		ip link add wN type veth peer name eth0 netns nN
		ip link set wN master sw up
		ip -n nN addr add 192.0.2.N/24 dev eth0
		ip -n nN link set eth0 up
		ip -n nN route add default via 192.0.2.254
		ip netns exec nN sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'`
	// The rule is for both protocols, at every way into a node.
	rewritten = `
		for proto in tcp udp; do for chain in PREROUTING OUTPUT; do
			ip netns exec nN iptables -w -t nat -A $chain -d ADDR -p $proto --dport PORT -j DNAT --to-destination POD:5201
		done; done`
	masked = `
		for proto in tcp udp; do
			ip netns exec nN iptables -w -t nat -A POSTROUTING -p $proto -m conntrack --ctorigdst ADDR --ctorigdstport PORT -j MASQUERADE
		done`
)

func shell(t *testing.T, script string, words ...string) {
	t.Helper()
	out, err := exec.Command("sh", "-ec", strings.NewReplacer(words...).Replace(
		script)).CombinedOutput()
	if err != nil {
		t.Errorf("%s\n%s%v", script, out, err)
	}
}

func number(name string) (own, other string) {
	if name == "n1" {
		return "1", "2"
	}
	return "2", "1"
}

// inNamespaces reports whether this process has namespaces of its own. If not, it runs the test in
// some.
func inNamespaces(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ofNamespaces) == "" {
		cmd := exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child",
			"--propagation", "private", "sh", "-ec",
			`mount -t proc proc /proc; mount -t tmpfs tmpfs /run; mkdir /run/netns
			echo nameserver 127.0.0.1 >/run/names; mount --bind /run/names /etc/resolv.conf; exec "$0" "$@"`, "/proc/self/exe")
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args = append(cmd.Args[:len(cmd.Args)-1], self, "-test.run", "^"+t.Name()+"$",
			"-test.v="+fmt.Sprint(testing.Verbose()))
		cmd.Env = append(os.Environ(), ofNamespaces+"=1")
		out, err := cmd.CombinedOutput()
		switch {
		case err != nil && strings.Contains(string(out), "unshare: unshare failed"):
			pathtest.SkipOrFail(t, "%s", out)
		case err != nil:
			t.Fatalf("%s%v", out, err)
		}
		t.Logf("%s", out)
		return false
	}
	return true
}

func TestConformance(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	for name, p := range testPlugins {
		t.Run(name, func(t *testing.T) {
			s := joined(t, p)
			conforms(t, name, s)
			t.Run("masquerade", func(t *testing.T) { masquerades(t, name, s) })
			if name != "routed" { // as with a bridge
				t.Run("outside", func(t *testing.T) { outsideConforms(t, name, s) })
			}
		})
	}
}

func joined(t *testing.T, p plugin) *apiserver {
	shell(t, `ip link set lo up; ip link add sw type bridge; ip link set sw up`)
	for _, n := range []string{"n1", "n2"} {
		own, other := number(n)
		shell(t, machines+"\n"+p.node, "nN", n, "wN", "w"+own, ".N", "."+own, "0N", "0"+own, ".O",
			"."+other, "0O", "0"+other)
	}
	t.Cleanup(func() {
		shell(
			t,
			`for l in w1 w2 sw; do ip link del $l; done; for n in $(ls /run/netns); do ip `+
				`netns del $n; done`)
	})
	s := newAPIServer(t, "n1", "n2")
	spaces := map[string]string{} // of pods; guarded by s.mu
	addrs := map[string]string{}  // of the server's pod on a node
	count := 10
	s.place = func(pod *corev1.Pod) {
		s.run(pod)
		spaces[pod.Name] = pod.Spec.NodeName
		if pod.Spec.HostNetwork {
			return
		}
		count++
		own, _ := number(pod.Spec.NodeName)
		i := fmt.Sprint(count)
		words := []string{"nN", pod.Spec.NodeName, ".N", "." + own, "vethP", "veth" + i, "caliP",
			"cali" + i, "pP", "p" + i, ".P", "." + i}
		shell(t, "ip netns add pP; ip -n pP link set lo up\n"+p.pod, words...)
		spaces[pod.Name], pod.Status.PodIP = "p"+i, "10.97."+own+"."+i
		if pod.Labels[roleLabel] == string(serving) {
			addrs[pod.Spec.NodeName] = pod.Status.PodIP
		}
		if ports := pod.Spec.Containers[0].Ports; len(ports) > 0 {
			shell(t, rewritten, "nN", pod.Spec.NodeName, "ADDR", "192.0.2."+own, "PORT",
				fmt.Sprint(ports[0].HostPort), "POD", pod.Status.PodIP)
		}
	}
	s.instead = func(w http.ResponseWriter, r *http.Request, a asking) bool {
		if a.verb != "create" || a.kind != services {
			return false
		}
		v := &corev1.Service{}
		if err := json.NewDecoder(r.Body).Decode(v); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		v.TypeMeta, v.Namespace = metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}, fakeNamespace
		s.made++
		port, local := fmt.Sprint(30000+s.made),
			v.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
		v.Spec.ClusterIP = fmt.Sprintf("198.51.100.%d", s.made)
		for _, n := range []string{"n1", "n2"} {
			own, _ := number(n)
			if v.Spec.Type == corev1.ServiceTypeClusterIP {
				shell(t, rewritten, "nN", n, "ADDR", v.Spec.ClusterIP, "PORT", "5201", "POD",
					addrs["n1"])
				continue
			}
			for i := range v.Spec.Ports {
				v.Spec.Ports[i].NodePort = int32(30000 + s.made)
			}
			if n == "n2" && local {
				continue
			}
			script := rewritten
			if !local {
				script += masked
			}
			shell(t, script, "nN", n, "ADDR", "192.0.2."+own, "PORT", port, "POD", addrs["n1"])
		}
		s.services[v.Name] = v
		reply(w, v)
		return true
	}
	s.exec = func(pod string, command []string, in io.Reader, out, errOut io.Writer) error {
		s.mu.Lock()
		space := spaces[pod]
		s.mu.Unlock()
		self, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := exec.Command("ip", append([]string{"netns", "exec", space, self}, command[1:]...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = in, out, errOut, time.Second
		return cmd.Run()
	}
	return s
}

func conforms(t *testing.T, name string, s *apiserver) {
	k := &Kubernetes{Pods: cluster.Pods{Access: s.access(), Version: testVersion,
		Image: "example.org/toll"}, StateDir: t.TempDir()}
	defer func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		if len(s.pods)+len(s.services) > 0 {
			t.Errorf("%d pods and %d services are left", len(s.pods), len(s.services))
		}
	}()
	for _, word := range modes() {
		m, _ := mode.Find(mode.Name(word))
		for _, r := range m.Routes {
			spec := path.Spec{Mode: m.Name, From: r.From, To: r.To}
			t.Run(fmt.Sprintf("%s/%s/%s", m.Name, r.From, r.To), func(t *testing.T) {
				route(t, k, spec, wanted(name, r))
			})
			if m.PerPort && r.From == mode.FromRemoteContainer {
				spec.UDP = true
				t.Run(fmt.Sprintf("%s/%s/%s/udp", m.Name, r.From, r.To), func(t *testing.T) {
					route(t, k, spec, wanted(name, r))
				})
			}
		}
		t.Run(word+"/together", func(t *testing.T) {
			var all []*path.Path
			for _, r := range m.Routes {
				spec := path.Spec{Mode: m.Name, From: r.From, To: r.To}
				if errors.Is(k.Check(t.Context(), spec), machine.ErrUnsupported) {
					continue
				}
				p, err := k.Build(t.Context(), spec)
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				all = append(all, p)
			}
			pathtest.InOneRun(t, all)
		})
	}
}

// masquerades has nodes that rewrite the addresses of pods for everything but pods, as with
// Flannel's --ip-masq.
func masquerades(t *testing.T, name string, s *apiserver) {
	shell(t, `for n in n1 n2; do
		ip netns exec $n iptables -w -t nat -A POSTROUTING -s 10.97.0.0/16 ! -d 10.97.0.0/16 -j MASQUERADE
	done`)
	k := &Kubernetes{Pods: cluster.Pods{Access: s.access(), Version: testVersion,
		Image: "example.org/toll"}, StateDir: t.TempDir()}
	defer func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}()
	want := map[string]string{"routed": "veth·MASQ·wire"}[name]
	if want == "" {
		want = "veth·bridge·MASQ·wire"
	}
	for _, overUDP := range []bool{false, true} {
		route(t, k, path.Spec{Mode: mode.Pod, From: mode.FromContainer, To: mode.ToOutside,
			UDP: overUDP}, want)
	}
	shell(t, `for n in n1 n2; do
		ip netns exec $n iptables -w -t nat -D POSTROUTING -s 10.97.0.0/16 ! -d 10.97.0.0/16 -j MASQUERADE
	done`)
}

func wanted(plugin string, r mode.Route) string {
	hops := r.String()
	switch plugin {
	case "vxlan":
		if r.To.Outside() { // replies to the pod take the tunnel
			break
		}
		// A node's own answers from a service bypass the tunnel, as do requests to a pod from a
		// node's port: it is no hop of both directions.
		if r.To == mode.ToContainer && !strings.HasPrefix(hops, "DNAT") {
			hops = strings.Replace(hops, "wire", "vxlan·wire·vxlan", 1)
		}
	case "routed":
		hops = strings.ReplaceAll(hops, "bridge·", "")
		if r.From == mode.FromHost { // the node's address is not rewritten
			hops = strings.Replace(hops, "MASQ·", "", 1)
		}
	}
	return hops
}

func route(t *testing.T, k *Kubernetes, spec path.Spec, want string) {
	err := k.Check(t.Context(), spec)
	var u *machine.UnsupportedError
	switch {
	case errors.As(err, &u) && (spec.To.Six() || u.Lack == machine.LackDNS):
		return
	case err != nil:
		t.Fatal(err)
	}
	p, err := k.Build(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := p.Route(0).String(); want != "" && got != want {
		t.Errorf("its hops are %s, want %s; %v", got, want, p.Facts)
	}
	pathtest.CarriesTwice(t, p)
	if _, err := p.Inspect(); err != nil {
		t.Error(err)
	}
}

// outsideConforms dials, from no node, the pod's own node, and another one, which forwards packets.
func outsideConforms(t *testing.T, name string, s *apiserver) {
	at := func(client Node) (*reached, error) {
		here, err := stepOut(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		return (&site{ctx: t.Context(), run: &run{here: here}, client: &end{Node: client}}).reach(
			30000, "the node port")
	}
	inside, elsewhere := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("203.0.113.9")
	var u *machine.UnsupportedError
	if _, err := at(Node{Name: "n1", Addr: inside}); !errors.As(err, &u) ||
		u.Missing != "this machine does not reach the node port 30000 of node n1: dial tcp "+
			"192.0.2.1:30000: connect: network is unreachable" ||
		u.Remedy == "" {
		t.Errorf("without a route: %v", err)
	}
	shell(t, `ip addr add 192.0.2.100/24 dev sw`)
	if r, err := at(Node{Name: "n1", Addr: elsewhere, External: []netip.Addr{inside}}); err != nil || r.addr != inside || r.own != elsewhere {
		t.Errorf("by its external address: %+v, %v", r, err)
	}
	between := map[string]string{"bridge": "wire", "vxlan": "vxlan·wire·vxlan"}[name]
	for _, tt := range []struct {
		nodes []string
		hops  map[mode.Name]string
	}{
		{[]string{"n1"}, map[mode.Name]string{
			mode.Host: "wire", mode.HostPort: "wire·DNAT·bridge·veth",
			mode.NodePort:      "wire·DNAT·MASQ·bridge·veth",
			mode.NodePortLocal: "wire·DNAT·bridge·veth"}},
		{[]string{"n1", "n2"}, map[mode.Name]string{
			mode.Host: "wire", mode.NodePort: "wire·DNAT·MASQ·" + between + "·bridge·veth"}},
	} {
		k := &Kubernetes{Pods: cluster.Pods{Access: s.access(), Nodes: tt.nodes, Outside: true,
			Version: testVersion, Image: "example.org/toll"}, StateDir: t.TempDir()}
		for _, name := range fromOutside {
			spec := path.Spec{Mode: name, From: mode.FromRemote, To: mode.ToAddress}
			want := tt.hops[name]
			t.Run(fmt.Sprintf("%s/%s", name, strings.Join(tt.nodes, "-")), func(t *testing.T) {
				if want == "" {
					if err := k.Check(t.Context(), spec); !errors.As(err, &u) ||
						!strings.HasSuffix(u.Missing, "pod is on node n1") {
						t.Errorf("got %v", err)
					}
					return
				}
				route(t, k, spec, want)
			})
		}
		spec := path.Spec{Mode: mode.NodePort, From: mode.FromRemote, To: mode.ToAddress, UDP: true}
		t.Run("udp/"+strings.Join(tt.nodes, "-"), func(t *testing.T) {
			route(t, k, spec, tt.hops[mode.NodePort])
		})
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}
