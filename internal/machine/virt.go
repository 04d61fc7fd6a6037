package machine

import (
	"os"
	"slices"
	"strings"
)

func (m Machine) virtualization(cpuinfo string) string {
	var layers []string
	if h := m.hypervisor(cpuinfo); h != "" {
		layers = append(layers, h)
	}
	if c := m.container(); c != "" {
		layers = append(layers, c+" container")
	}
	return strings.Join(layers, ", ")
}

// hypervisor returns the name of the hypervisor or cloud, or "" on bare metal. Clouds rent out bare
// metal, too, so their names in the firmware prove nothing. On x86 the CPU's flag decides, on other
// CPUs whether the product's name contains metal.
func (m Machine) hypervisor(cpuinfo string) string {
	product := m.text("/sys/class/dmi/id/product_name")
	vendor := m.text("/sys/class/dmi/id/sys_vendor")
	flags := field(cpuinfo, "flags")
	name := firmware(vendor, product)
	if flags == "" {
		switch {
		case strings.Contains(product, "metal"):
			return ""
		case m.text("/proc/device-tree/hypervisor/compatible") == "linux,kvm":
			return "KVM"
		}
		return name
	}
	if !slices.Contains(strings.Fields(flags), "hypervisor") {
		return ""
	}
	if name != "" {
		return name
	}
	if m.text("/sys/hypervisor/type") == "xen" {
		return "Xen"
	}
	// Firecracker's machines have no DMI.
	clocks := m.text("/sys/devices/system/clocksource/clocksource0/available_clocksource")
	switch {
	case strings.Contains(clocks, "kvm-clock"):
		return "KVM"
	case strings.Contains(clocks, "hyperv"):
		return "Hyper-V"
	case strings.Contains(clocks, "xen"):
		return "Xen"
	}
	return "virtual machine"
}

func firmware(vendor, product string) string {
	both := vendor + " " + product
	for _, known := range []struct{ text, name string }{
		{"Amazon EC2", "Amazon EC2"},
		{"Google Compute Engine", "Google Compute Engine"},
		{"Alibaba Cloud", "Alibaba Cloud"},
		{"OpenStack", "OpenStack"},
		{"Hetzner", "Hetzner"},
		{"Microsoft Corporation Virtual Machine", "Hyper-V"},
		{"VMware", "VMware"},
		{"VirtualBox", "VirtualBox"},
		{"Parallels", "Parallels"},
		{"Apple Virtualization", "Apple Virtualization"},
		{"Xen", "Xen"},
		{"KVM", "KVM"},
		{"QEMU", "QEMU"},
	} {
		if strings.Contains(both, known.text) {
			return known.name
		}
	}
	return ""
}

// Uncontained returns what to do where the container that this process is in keeps it from making
// namespaces, or, if not filtered, from setting what they need. Without more privileges on the
// machine, a container gets its own from what these options turn off: filters of system calls, of
// which Podman's admit namespaces, and mounts over parts of /proc.
func (m Machine) Uncontained(filtered bool) string {
	const outside, option = "run toll outside the container, or the container with ", "--security-opt "
	var options string
	switch m.container() {
	case "Docker":
		options = option + "seccomp=unconfined " + option + "systempaths=unconfined"
	case "Podman":
		options = option + "unmask=ALL"
		if filtered {
			options = option + "seccomp=unconfined " + options
		}
	default:
		return outside + "--privileged"
	}
	if strings.HasSuffix(m.text("/proc/self/attr/current"), "(enforce)") {
		options += " " + option + "apparmor=unconfined"
	}
	return outside + options
}

// Contained returns the kind of the container whose own network this process is in, such as
// "Docker" or "Kubernetes"; "": it is in none, or that is not known.
func (m Machine) Contained() string {
	own, err := os.Readlink(m.path("/proc/self/ns/net"))
	first, errFirst := os.Readlink(m.path("/proc/1/ns/net"))
	// Only the machine's first network namespace has this setting.
	if err != nil || errFirst != nil || own != first || m.exists("/proc/sys/net/core/netdev_max_backlog") {
		return ""
	}
	return m.container()
}

func (m Machine) container() string {
	// With cgroup namespaces nothing in /proc shows a pod, but its service account does.
	for _, mark := range []struct{ file, name string }{
		{"/var/run/secrets/kubernetes.io", "Kubernetes"},
		{"/run/.containerenv", "Podman"},
		{"/.dockerenv", "Docker"},
	} {
		if m.exists(mark.file) {
			return mark.name
		}
	}
	if name := m.text("/run/systemd/container"); name != "" {
		return name
	}
	groups := m.read("/proc/1/cgroup")
	for _, mark := range []struct{ text, name string }{
		{"kubepods", "Kubernetes"},
		{"libpod", "Podman"},
		{"/docker", "Docker"},
		{"/lxc", "LXC"},
	} {
		if strings.Contains(groups, mark.text) {
			return mark.name
		}
	}
	return ""
}
