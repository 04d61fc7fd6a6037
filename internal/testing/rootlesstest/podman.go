package rootlesstest

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

// Podman is a Podman service of the machine, root's or its user's.
type Podman struct {
	Host string // CONTAINER_HOST

	versions map[string]string // of programs, as the service says them
	service
}

// podmanTree makes Debian's tree the root of a mount namespace: its podman needs later libraries
// than the machine may have. chroot would keep it from user namespaces. The machine's cgroups may
// be of both versions, with which crun does not work.
const podmanTree = `set -e
tree=$1 work=$2 home=$3
shift 3
mkdir -p $work/up $work/work $work/root $work/store
mount --make-rprivate /
r=$work/root
mount -t overlay overlay -o lowerdir=$tree,upperdir=$work/up,workdir=$work/work $r
mkdir -p $r$home $r/var/lib/containers $r/etc/containers $r/before
chmod 1777 $r/tmp
mount --rbind /proc $r/proc
mount --rbind /dev $r/dev
mount --rbind /run $r/run
mount --rbind /run/s $r/sys
umount -l $r/sys/fs/cgroup
mount -t cgroup2 none $r/sys/fs/cgroup
echo $$ >$r/sys/fs/cgroup/cgroup.procs # the user may not be able to read the present one
mount --bind $home $r$home
mount --bind $work/store $r/var/lib/containers
cp /etc/passwd /etc/group /etc/subuid /etc/subgid $r/etc/
echo nameserver 192.0.2.53 >$r/etc/resolv.conf
printf '[containers]\ncgroups="disabled"\n[engine]\ncgroup_manager="cgroupfs"\nevents_logger="file"\n' >$r/etc/containers/containers.conf
echo '{"default":[{"type":"insecureAcceptAnything"}]}' >$r/etc/containers/policy.json
cd $r
pivot_root . before
umount -l /before
cd /
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec "$@"`

// Debian's suites with Podman 5 and with Podman 6, netavark 2 and no slirp4netns.
const (
	Podman5 = "trixie"
	Podman6 = "experimental"
)

// Podman starts the service of a suite's Podman, root's or the user's. It ends with the machine.
func (m *Machine) Podman(t testing.TB, suite string, root bool) *Podman {
	t.Helper()
	tree, err := pathtest.Fetch("rootless", "podman", suite)
	if err != nil {
		pathtest.SkipOrFail(t, "no Podman: %v", err)
	}
	who, dir, run := "user", m.Runtime+"/podman", m.Command
	if root {
		who, dir, run = "root", "/run/podman", m.Root
	}
	p := &Podman{Host: "unix://" + dir + "/podman.sock",
		service: service{log: filepath.Join(m.Home, "podman-"+who+".log")}}
	if out, err := run("mkdir", "-p", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	command := []string{"env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	if !root {
		command = m.login("/usr/sbin:/usr/bin:/sbin:/bin")
	}
	command = append(command, "podman", "system", "service", "-t", "0", p.Host)
	cmd := m.Root("unshare", append([]string{"-m", "bash", "-c", podmanTree, "podman", tree,
		filepath.Join(m.Home, "podman-"+who), m.Home}, command...)...)
	p.start(t, "Podman's service", cmd, func() bool {
		return m.Root("curl", "-sf", "--unix-socket", dir+"/podman.sock",
			"http://podman/_ping").Run() == nil
	})
	about, err := m.Root("curl", "-sf", "--unix-socket", dir+"/podman.sock",
		"http://podman/v4.0.0/libpod/info").Output()
	var info struct {
		Host struct {
			NetworkBackendInfo struct {
				Version string
				DNS     struct{ Version string }
			}
		}
		Version struct{ Version string }
	}
	if err := errors.Join(err, json.Unmarshal(about, &info)); err != nil {
		t.Fatalf("Podman's version: %v: %s", err, about)
	}
	network := info.Host.NetworkBackendInfo
	p.versions = map[string]string{"Podman": info.Version.Version, "netavark": network.Version,
		"aardvark-dns": network.DNS.Version}
	return p
}

// Ran notes the versions of Podman and its network programs, once the test has passed. what says
// what was run, in a few words.
func (p *Podman) Ran(t testing.TB, what string) {
	for program, says := range p.versions {
		testversions.Ran(t, program, testversions.In(says), what)
	}
}
