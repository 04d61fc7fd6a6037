package peer_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/rootlesstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// beyondSSH is a real sshd at the other end of the machine's wire, and a ssh that may log in there.
const beyondSSH = `set -e
dir=$1 at=$2
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd "$dir/tmp" "$dir/home" "$dir/bin"
mount --bind "$dir/home" /root
cat /proc/sys/kernel/random/uuid >/run/boot
mount --bind /run/boot /proc/sys/kernel/random/boot_id
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$dir/$key"; done
chown 21000 "$dir/user"
echo "$at $(cut -d' ' -f1,2 "$dir/host.pub")" >"$dir/known"
cat >"$dir/bin/ssh" <<X
#!/bin/sh
exec /usr/bin/ssh -i "$dir/user" -o UserKnownHostsFile="$dir/known" \
	-o GlobalKnownHostsFile=none "\$@"
X
chmod 755 "$dir/bin/ssh"
exec /usr/sbin/sshd -D -e -f /dev/null -h "$dir/host" -o AuthorizedKeysFile="$dir/user.pub" \
	-o PidFile=none -o UsePAM=no -o StrictModes=no -o PermitRootLogin=prohibit-password \
	-o "SetEnv=TMPDIR=$dir/tmp PATH=$(dirname "$3"):/usr/bin:/bin"`

func TestRootlessToPeer(t *testing.T) {
	if os.Getenv("BRIDGETOLL_TEST_ROOTLESS") == "" {
		t.Skip("make test-rootless runs it")
	}
	for _, program := range []string{"/usr/sbin/sshd", "/usr/bin/ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			pathtest.SkipOrFail(t, "%v", err)
		}
	}
	for _, e := range pathtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			m := rootlesstest.New(t)
			d := m.Docker(t, e, nil)
			overSSH(t, m, "DOCKER_HOST="+d.Host, "rr,crr,bulk,bulk-reverse", "rootless-publish")
		})
	}
	if pathtest.AsksFor("podman") {
		t.Run("podman", func(t *testing.T) {
			m := rootlesstest.New(t)
			p := m.Podman(t, rootlesstest.Podman5, false)
			// An upload through pasta may stand still for longer than toll waits.
			overSSH(t, m, "CONTAINER_HOST="+p.Host, "rr,crr,bulk-reverse", "pasta", "rootlessport")
		})
	}
}

// overSSH measures the way out of a user's containers to a process that ssh starts.
func overSSH(t *testing.T, m *rootlesstest.Machine, host, loads string, modes ...string) {
	t.Helper()
	const patience = time.Minute
	dir, toll := filepath.Join(m.Home, "ssh"), pathtest.Toll(t)
	at := rootlesstest.Beyond.Addr().String()
	server := exec.Command("unshare", "-m", "bash", "-c", beyondSSH, "sshd", dir, at, toll)
	var said strings.Builder
	server.Stderr = &said
	if err := m.Beyond.Start(server); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	toll = m.Put(t, toll)
	testwait.Until(t, patience, "sshd lets root in", func() bool {
		return m.Root(filepath.Join(dir, "bin/ssh"), "-o", "BatchMode=yes", at, "true").Run() == nil
	})
	env := []string{"PATH=" + dir + "/bin:" + os.Getenv("PATH"),
		"XDG_STATE_HOME=" + m.Home + "/state", "TOLL_HISTORY=off", "TOLL_BUSY=yes", "DOCKER_HOST=",
		host, toll}
	way := []string{"--peer", "root@" + at, "--to", "outside", "--from", "container"}
	out, err := m.Root("env", slices.Concat(env, []string{"compare", "host"}, modes, way, []string{
		"--load", loads, "--rounds", "2", "--window", "300ms", "--quiet",
		"--details"})...).CombinedOutput()
	if err != nil && !pathtest.TooBusy(string(out)) ||
		!strings.Contains(string(out), "Every row was witnessed") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = m.Command("env", slices.Concat(env, []string{"path", modes[0]},
		way)...).CombinedOutput()
	exit := &exec.ExitError{}
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(string(out), "as root") &&
		!strings.Contains(string(out), "hint: sudo") {
		t.Errorf("as its user: %v: %s", err, out)
	}
	if t.Failed() {
		return
	}
	if left, _ := filepath.Glob(dir + "/tmp/*"); len(left) > 0 {
		t.Errorf("left at the peer: %q", left)
	}
}
