package sysctl

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Parameters that affect whether, where and how packets pass.
var (
	ofNamespace = []string{
		"net/ipv4/ip_forward", "net/ipv4/ip_nonlocal_bind", "net/ipv4/ip_local_port_range",
		"net/ipv4/ip_local_reserved_ports", "net/ipv4/ip_unprivileged_port_start",
		"net/ipv4/ip_default_ttl", "net/ipv4/fwmark_reflect", "net/ipv4/tcp_fwmark_accept",
		"net/ipv4/tcp_l3mdev_accept", "net/ipv4/udp_l3mdev_accept",
		"net/ipv4/fib_multipath_hash_policy", "net/ipv4/fib_multipath_hash_seed",
		"net/ipv4/fib_multipath_use_neigh",
		"net/ipv4/icmp_errors_use_inbound_ifaddr",
		"net/ipv6/bindv6only", "net/ipv6/ip_nonlocal_bind", "net/ipv6/fwmark_reflect",
		"net/ipv6/fib_multipath_hash_policy",
		"net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables",
		"net/bridge/bridge-nf-call-arptables", "net/bridge/bridge-nf-filter-vlan-tagged",
		"net/bridge/bridge-nf-filter-pppoe-tagged", "net/bridge/bridge-nf-pass-vlan-input-dev",
		"net/netfilter/nf_conntrack_checksum", "net/netfilter/nf_conntrack_helper",
		"net/netfilter/nf_conntrack_tcp_be_liberal",
		"net/netfilter/nf_conntrack_tcp_ignore_invalid_rst",
		"net/netfilter/nf_conntrack_tcp_loose",
	}
	ofDevice = map[string][]string{
		"net/ipv4/conf/": {"forwarding", "rp_filter", "route_localnet", "accept_local",
			"src_valid_mark", "arp_accept", "arp_announce", "arp_filter", "arp_ignore",
			"proxy_arp", "proxy_arp_pvlan", "medium_id", "shared_media", "send_redirects",
			"accept_redirects", "accept_source_route", "bc_forwarding",
			"drop_unicast_in_l2_multicast", "ignore_routes_with_linkdown"},
		"net/ipv6/conf/": {"disable_ipv6", "forwarding", "force_forwarding", "proxy_ndp",
			"accept_redirects", "accept_source_route", "drop_unicast_in_l2_multicast",
			"ignore_routes_with_linkdown", "seg6_enabled", "use_oif_addrs_only"},
	}
)

// everyDevice stands for all devices and for those that will be made.
var everyDevice = []string{"all", "default"}

// ReadAll reads the parameters of the namespace and of the named devices that affect packets. The
// keys are the paths of their files below /proc/sys. Parameters that the kernel lacks are left out.
func ReadAll(devices []string) map[string]string {
	out := map[string]string{}
	get := func(dir string, names []string) { // the kernel looks up a name faster than a path
		at, err := ignoringEINTR(func() (int, error) {
			return unix.Open("/proc/sys/"+dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		})
		if err != nil {
			return
		}
		defer func() { _ = unix.Close(at) }()
		for _, name := range names {
			if b, err := readAt(at, name); err == nil {
				out[dir+name] = folded(b)
			}
		}
	}
	get("", ofNamespace)
	for dir, names := range ofDevice {
		for _, device := range slices.Concat(everyDevice, devices) {
			get(dir+device+"/", names)
		}
	}
	return out
}

func folded(b []byte) string { return strings.Join(strings.Fields(string(b)), " ") }

// Valid reports whether ReadAll may have read the value.
func Valid(key, value string) bool {
	const longest = 4096 // reserved ports
	if len(value) > longest || strings.Trim(value, "0123456789 -,") != "" {
		return false
	}
	_, _, ok := split(key)
	return ok || slices.Contains(ofNamespace, key)
}

// split returns the device and the name of a device's parameter. ok is false for other keys.
func split(key string) (device, name string, ok bool) {
	for dir, names := range ofDevice {
		rest, is := strings.CutPrefix(key, dir)
		device, name, ok = strings.Cut(rest, "/")
		if is && ok && slices.Contains(names, name) && device != "" && device != "." &&
			device != ".." {
			return device, name, true
		}
	}
	return "", "", false
}

// SetAll sets parameters. It does so in an order in which none changes another that is already set.
// It ignores devices that do not exist, and returns the errors of other parameters.
func SetAll(values map[string]string) map[string]error {
	refused := map[string]error{}
	for _, key := range slices.SortedFunc(maps.Keys(values), inOrder) {
		if err := setFile(key, values[key]); err != nil {
			refused[key] = err
		}
	}
	return refused
}

// WriteAll sets parameters without reading them. It ignores errors.
func WriteAll(values map[string]string) {
	for key, value := range values {
		if Valid(key, value) {
			_ = write("/proc/sys/"+key, value)
		}
	}
}

func inOrder(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) }

// rank orders parameters: ip_forward also sets forwarding of all devices, and "all" also sets some
// parameters of each device.
func rank(key string) int {
	device, _, ok := split(key)
	switch {
	case key == "net/ipv4/ip_forward":
		return 0
	case !ok || device == "all":
		return 1
	case device == "default":
		return 2
	}
	return 3
}

// Spreads reports whether setting a parameter of ReadAll may change others.
func Spreads(key string) bool {
	_, _, ofDevice := split(key)
	return ofDevice || rank(key) == 0
}

// AsNew returns the key of the parameter whose value a new device takes over, for a parameter of
// ReadAll that belongs to a device. For others it returns the key itself.
func AsNew(key string) string {
	device, name, ok := split(key)
	if !ok || slices.Contains(everyDevice, device) {
		return key
	}
	return strings.TrimSuffix(key, device+"/"+name) + "default/" + name
}

var errForbidden = errors.New("not a parameter that toll copies")

func setFile(key, value string) error {
	if !Valid(key, value) {
		return errForbidden
	}
	name := "/proc/sys/" + key
	now, err := read(name)
	if device, _, ok := split(key); ok && errors.Is(err, fs.ErrNotExist) &&
		!slices.Contains(everyDevice, device) {
		return nil
	}
	if err != nil {
		return err
	}
	if folded(now) == value {
		return nil
	}
	if err := write(name, value); err != nil {
		return err
	}
	if now, err = read(name); err == nil && folded(now) != value {
		return fmt.Errorf("the kernel kept %s", folded(now))
	}
	return err
}
