package machine

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"syscall"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/text/hint"
)

func TestExplainUserNamespace(t *testing.T) {
	const (
		users    = "/proc/sys/user/max_user_namespaces"
		nets     = "/proc/sys/user/max_net_namespaces"
		debian   = "/proc/sys/kernel/unprivileged_userns_clone"
		apparmor = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	)
	base := map[string]string{
		users: "15000\n", nets: "15000\n", debian: "1\n", apparmor: "0\n",
		"/proc/self/ns/user": "", "/proc/self/ns/net": "", "/proc/self/status": "Seccomp:\t0\n",
	}
	const absent = "absent"
	for _, tt := range []struct {
		name   string
		files  map[string]string
		cause  error
		reason string
		hint   string
	}{
		{"users-0", map[string]string{users: "0\n"}, syscall.ENOSPC, users + " is 0",
			remedy.AsRoot("sysctl -w user.max_user_namespaces=15000")},
		{"nets-0", map[string]string{nets: "0\n"}, syscall.ENOSPC, nets + " is 0",
			remedy.AsRoot("sysctl -w user.max_net_namespaces=15000")},
		{"used-up", nil, syscall.ENOSPC,
			"the limits in /proc/sys/user are used up, or namespaces are nested too deeply", remedy.AsRoot("sysctl -w " +
				"user.max_user_namespaces=15000 user.max_net_namespaces=15000")},
		{"debian", map[string]string{debian: "0\n"}, syscall.EPERM, debian + " is 0",
			remedy.AsRoot("sysctl -w kernel.unprivileged_userns_clone=1")},
		{"ubuntu", map[string]string{apparmor: "1\n"}, syscall.EACCES, apparmor + " is 1",
			"run toll as root, or: " +
				remedy.AsRoot("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")},
		{"ubuntu-but-full", map[string]string{apparmor: "1\n", users: "0\n"}, syscall.ENOSPC,
			users + " is 0", remedy.AsRoot("sysctl -w user.max_user_namespaces=15000")},
		{"ubuntu-full-but-denied", map[string]string{apparmor: "1\n", users: "0\n"}, syscall.EPERM,
			apparmor + " is 1", "run toll as root, or: " +
				remedy.AsRoot("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")},
		{"no-config", map[string]string{"/proc/self/ns/user": absent}, syscall.EINVAL,
			"the kernel was built without CONFIG_USER_NS (no /proc/self/ns/user)",
			"run toll as root"},
		{"no-config-for-root", map[string]string{"/proc/self/ns/user": absent,
			"/proc/self/status": "Uid:\t0\t0\t0\t0\n"}, syscall.EINVAL,
			"the kernel was built without CONFIG_USER_NS (no /proc/self/ns/user)",
			"use a kernel with CONFIG_USER_NS=y"},
		{"no-net-config", map[string]string{"/proc/self/ns/net": absent}, syscall.EINVAL,
			"the kernel was built without CONFIG_NET_NS (no /proc/self/ns/net)",
			"use a kernel with CONFIG_NET_NS=y"},
		{"seccomp", map[string]string{"/.dockerenv": "", "/proc/self/status": "Seccomp:\t2\n"},
			syscall.EPERM, "the container's seccomp profile forbids it",
			"run toll outside the container, or the container with --security-opt " +
				"seccomp=unconfined --security-opt systempaths=unconfined"},
		{"seccomp and AppArmor", map[string]string{"/.dockerenv": "",
			"/proc/self/status":       "Seccomp:\t2\n",
			"/proc/self/attr/current": "docker-default (enforce)\n"},
			syscall.EPERM, "the container's seccomp profile forbids it",
			"run toll outside the container, or the container with --security-opt " +
				"seccomp=unconfined --security-opt systempaths=unconfined --security-opt " +
				"apparmor=unconfined"},
		{"seccomp of Podman", map[string]string{"/run/.containerenv": "",
			"/proc/self/status":       "Seccomp:\t2\n",
			"/proc/self/attr/current": "unconfined\n"},
			syscall.EPERM, "the container's seccomp profile forbids it",
			"run toll outside the container, or the container with --security-opt " +
				"seccomp=unconfined --security-opt unmask=ALL"},
		{"seccomp in a pod", map[string]string{"/proc/1/cgroup": "0::/kubepods/x\n",
			"/proc/self/status": "Seccomp:\t2\n"},
			syscall.EPERM, "the container's seccomp profile forbids it",
			"run toll outside the container, or the container with --privileged"},
		{"seccomp-no-container", map[string]string{"/proc/self/status": "Seccomp:\t2\n"},
			syscall.EPERM, "no known setting forbids it", "run toll as root"},
		{"chroot", map[string]string{"/proc/self/mountinfo": "31 22 0:5 / /proc rw - proc " +
			"proc rw\n"},
			syscall.EPERM, "toll runs in a chroot, in which the kernel makes none",
			"run toll outside the chroot, or enter it by pivot_root, " +
				"as container engines do"},
		{"no-chroot", map[string]string{"/proc/self/mountinfo": "22 1 8:1 / / rw - ext4 " +
			"/dev/sda1 rw\n"},
			syscall.EPERM, "no known setting forbids it", "run toll as root"},
		{"no-chroot-root-later", map[string]string{"/proc/self/mountinfo": "22 27 0:21 / " +
			"/proc rw - proc " +
			"proc rw\n27 1 254:0 / / rw - ext4 /dev/vda rw\n"},
			syscall.EPERM, "no known setting forbids it", "run toll as root"},
		{"container-no-seccomp", map[string]string{"/.dockerenv": ""}, syscall.EPERM,
			"no known setting forbids it", "run toll as root"},
		{"root-without-capabilities", map[string]string{
			"/proc/self/status": "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\nSeccomp:\t0\n"},
			syscall.EPERM, "root has no CAP_SETFCAP here, and may therefore map no root into one",
			"run toll with root's capabilities, or as another user, who needs none"},
		{"root-with-capabilities", map[string]string{
			"/proc/self/status": "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n"},
			syscall.EPERM, "no known setting forbids it",
			"run toll outside the chroot or container that it is in"},
		{"not-an-errno", map[string]string{users: "0\n"}, errors.New("odd"), users + " is 0",
			remedy.AsRoot("sysctl -w user.max_user_namespaces=15000")},
		{"not-an-errno-unexplained", nil, errors.New("odd"), "no known setting forbids it",
			"run toll as root"},
		{"garbage", map[string]string{users: "\xff", debian: "yes", apparmor: ""}, syscall.EPERM,
			"no known setting forbids it", "run toll as root"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := maps.Clone(base)
			maps.Copy(files, tt.files)
			maps.DeleteFunc(files, func(_, v string) bool { return v == absent })
			cause := fmt.Errorf("clone: %w", &os.SyscallError{Syscall: "clone", Err: tt.cause})
			err := tree(t, files).ExplainUserNamespace(cause)
			if !errors.Is(err, tt.cause) {
				t.Errorf("%v does not wrap its cause", err)
			}
			want := "make a user namespace: " + tt.reason + ": " + cause.Error()
			if err.Error() != want {
				t.Errorf("%q, want %q", err, want)
			}
			if hint.Of(err) != tt.hint {
				t.Errorf("hint of %v lacks %q", err, tt.hint)
			}
		})
	}
	if err := tree(t, base).ExplainUserNamespace(nil); err != nil {
		t.Errorf("nothing to explain: %v", err)
	}
}
