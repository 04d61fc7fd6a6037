package machine

import (
	"os"
	"path/filepath"
	"testing"
)

// Containers with the machine's network, and processes in a network that was made in one, are not
// meant.
func TestContained(t *testing.T) {
	const backlog = "/proc/sys/net/core/netdev_max_backlog"
	for name, c := range map[string]struct {
		own, first string
		files      map[string]string
		want       string
	}{
		"its own network":     {"net:[2]", "net:[2]", map[string]string{"/.dockerenv": ""}, "Docker"},
		"the machine's":       {"net:[1]", "net:[1]", map[string]string{"/.dockerenv": "", backlog: "1000\n"}, ""},
		"one made in it":      {"net:[3]", "net:[2]", map[string]string{"/.dockerenv": ""}, ""},
		"the first is hidden": {"net:[2]", "", map[string]string{"/.dockerenv": ""}, ""},
		"a machine's other":   {"net:[2]", "net:[2]", nil, ""},
	} {
		m := tree(t, c.files)
		for of, id := range map[string]string{"self": c.own, "1": c.first} {
			dir := filepath.Join(m.Root, "proc", of, "ns")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if id == "" {
				continue
			}
			if err := os.Symlink(id, filepath.Join(dir, "net")); err != nil {
				t.Fatal(err)
			}
		}
		if got := m.Contained(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestVirtualization(t *testing.T) {
	const guest, metal, arm = "flags\t: fpu hypervisor sse\n", "flags\t: fpu sse\n",
		"Features\t: fp asimd\n"
	dmi := func(cpuinfo, vendor, product string) map[string]string {
		return map[string]string{
			"/proc/cpuinfo":                  cpuinfo,
			"/sys/class/dmi/id/sys_vendor":   vendor,
			"/sys/class/dmi/id/product_name": product,
		}
	}
	const clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"bare-metal", dmi(metal, "Dell Inc.", "PowerEdge R640"), ""},
		{"ec2", dmi(guest, "Amazon EC2", "m5.large"), "Amazon EC2"},
		{"ec2-metal", dmi(metal, "Amazon EC2", "m5.metal"), ""},
		{"ec2-arm", dmi(arm, "Amazon EC2", "m6g.large"), "Amazon EC2"},
		{"ec2-arm-metal", dmi(arm, "Amazon EC2", "m6g.metal"), ""},
		{"gce", dmi(guest, "Google", "Google Compute Engine"), "Google Compute Engine"},
		{"hyper-v", dmi(guest, "Microsoft Corporation", "Virtual Machine"), "Hyper-V"},
		{"qemu", dmi(guest, "QEMU", "Standard PC (Q35 + ICH9, 2009)"), "QEMU"},
		{"vmware", dmi(guest, "VMware, Inc.", "VMware7,1"), "VMware"},
		{"xen", map[string]string{"/proc/cpuinfo": guest, "/sys/hypervisor/type": "xen\n"}, "Xen"},
		{"kvm-by-clock", map[string]string{"/proc/cpuinfo": guest, clocks: "tsc kvm-clock \n"},
			"KVM"},
		{"hyper-v-by-clock", map[string]string{
			"/proc/cpuinfo": guest, clocks: "hyperv_clocksource_tsc_page"}, "Hyper-V"},
		{"unknown", map[string]string{"/proc/cpuinfo": guest}, "virtual machine"},
		{"kvm-arm-board", map[string]string{"/proc/cpuinfo": arm,
			"/proc/device-tree/hypervisor/compatible": "linux,kvm\x00"}, "KVM"},
		{"docker", map[string]string{"/proc/cpuinfo": metal, "/.dockerenv": ""},
			"Docker container"},
		{"podman", map[string]string{"/run/.containerenv": ""}, "Podman container"},
		{"nspawn", map[string]string{"/run/systemd/container": "systemd-nspawn\n"},
			"systemd-nspawn container"},
		{"pod", map[string]string{"/proc/cpuinfo": guest, clocks: "kvm-clock",
			"/var/run/secrets/kubernetes.io/serviceaccount/token": ""},
			"KVM, Kubernetes container"},
		{"docker-v1", map[string]string{"/proc/1/cgroup": "3:cpu:/docker/1f\n"},
			"Docker container"},
		{"lxc-v1", map[string]string{"/proc/1/cgroup": "3:cpu:/lxc/web\n"}, "LXC container"},
		{"host-v2", map[string]string{"/proc/1/cgroup": "0::/init.scope\n"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := tree(t, tt.files)
			if got := m.virtualization(m.read("/proc/cpuinfo")); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestUncontained(t *testing.T) {
	const outside = "run toll outside the container, or the container with "
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"Docker": {map[string]string{"/.dockerenv": ""},
			"--security-opt seccomp=unconfined --security-opt systempaths=unconfined"},
		"Podman": {map[string]string{"/run/.containerenv": ""}, "--security-opt unmask=ALL"},
		"LXC":    {map[string]string{"/proc/1/cgroup": "3:cpu:/lxc/web\n"}, "--privileged"},
	} {
		if got := tree(t, c.files).Uncontained(false); got != outside+c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
