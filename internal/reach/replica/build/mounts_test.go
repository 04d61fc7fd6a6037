package build

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// arrangement is what a machine's file systems look like, and what commands find then.
type arrangement struct {
	Dir, Setup     string // a directory; a script that mounts there and elsewhere
	Script, Output string
	Refused        string // instead of Output: a part of the reason
}

// mountedBelow mounts below each directory that a command sees.
const mountedBelow = `mount -t tmpfs x /usr/local
mkdir -p /usr/local/bin '/usr/local/sub,a:b\c' /usr/local/x
echo one >/usr/local/file
mkfifo /usr/local/fifo
echo covered >/usr/local/covered
mount --bind /usr/local/fifo /usr/local/covered
printf '#!/bin/sh\necho ran\n' >/usr/local/bin/program
chmod +x /usr/local/bin/program
ln -s file /usr/local/link
echo two >'/usr/local/sub,a:b\c/file'
mount -t tmpfs -o noexec x /usr/local/x
echo three >/usr/local/x/file
mount -t tmpfs x /opt
mkdir -p /opt/a
mount --bind /usr/local/x /opt/a
echo 192.0.2.1 bound >hosts
mount --bind hosts /etc/hosts
mkdir home home/sub
mount -t tmpfs -o noexec x home
mkdir home/in
mount -t tmpfs x home/in
echo small >home/small
echo inner >home/in/inner
head -c 1000000 /dev/zero >home/large
mkfifo home/fifo
`

func arrangements(dir string) map[string]arrangement {
	const ruin = "iptables -I INPUT -p tcp --dport 9000 -j DROP && "
	return map[string]arrangement{
		"below": {dir + "/home", "cd " + dir + "\n" + mountedBelow, ruin + `cd /usr/local
cat file link 'sub,a:b\c/file' x/file /opt/a/file; program
ls -d fifo covered home/fifo 2>/dev/null
(echo y >/usr/x) 2>/dev/null || (echo y >x/file) 2>/dev/null || (echo y >file) 2>/dev/null || echo closed
cat /etc/hosts; echo changed >/etc/hosts; cat /etc/hosts; cd "$OLDPWD"
cat small in/inner; wc -c <large; echo y >small; echo y >in/inner; echo y >new; cat small in/inner new
(echo y >large) 2>/dev/null || echo closed
`, "one\none\ntwo\nthree\nthree\nran\nclosed\n192.0.2.1 bound\nchanged\nsmall\ninner\n1000000\n" +
			"y\ny\ny\nclosed\n", ""},
		"sys-read-only": {dir, "mount -o remount,bind,ro /sys", ruin +
			"ls /sys/class/net | grep -x eth0; (echo 1 >/sys/class/net/docker0/bridge/multicast_snooping) " +
			"2>/dev/null || echo closed", "eth0\nclosed\n", ""},
		"sys-covered": {dir, "mount -t tmpfs x /sys/kernel", ruin + "ls /sys; (echo 1 >/sys/x) 2>/dev/null " +
			"|| echo closed", "closed\n", ""},
		"link": {dir, "mkdir " + dir + "/else; echo linked >" + dir + "/else/file; " +
			"mkdir " + dir + "/0 " + dir + "/0/u " + dir + "/0/w; ln -s " + dir + "/else " + dir + "/0/u/local\n" +
			over(dir+"/0"), ruin + "cd /; cat /usr/local/file", "linked\n", ""},
		"proc-covered": {Dir: dir, Setup: "mount -t tmpfs x /proc/scsi || mount -t tmpfs x /proc/bus",
			Refused: "hides a part of /proc"},
		"usr-refused": {Dir: dir, Setup: "cd " + dir + "; mkdir 1 1/u 1/w 2 2/u 2/w\n" +
			over(dir+"/1") + over(dir+"/2"), Refused: "/usr, of the file system overlay, cannot be shown"},
	}
}

// over returns a script that mounts an overlay on /usr, with upper and work directories below dir.
func over(dir string) string {
	return "mount -t overlay -o lowerdir=/usr,upperdir=" + dir + "/u,workdir=" + dir + "/w x /usr\n"
}

// Commands are tried wherever the kernel lets the jail show them the machine's programs.
func TestJailOfMounts(t *testing.T) {
	if os.Getenv(asUser) != "" {
		var in struct {
			A arrangement
			M replica.Machine
		}
		if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		in.A.try(t, &in.M)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("mounts as root")
	}
	m := newSite(t).machine()
	for name := range arrangements("") {
		t.Run(name, func(t *testing.T) {
			a := arrangements(t.TempDir())[name]
			cmd, err := self("TestJailOfMounts", struct {
				A arrangement
				M *replica.Machine
			}{a, m})
			if err != nil {
				t.Fatal(err)
			}
			cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
			if out, err := cmd.CombinedOutput(); err != nil || !testgolden.HasLine(string(out),
				"PASS") {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

func (a arrangement) try(t *testing.T, m *replica.Machine) {
	if out, err := exec.Command("sh", "-ec", a.Setup).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Chdir(a.Dir)
	s := &site{t: t}
	r := s.start(m, socket(0, "0.0.0.0:9000"))
	far := replica.Client{Card: "eth0"}
	s.expect(r, far, "192.0.2.10:9000", 0)
	out, err := r.Run(t.Context(), replica.Command{Script: []byte(a.Script)})
	if a.Refused != "" {
		no, ok := errors.AsType[*replica.NoJailError](err)
		if !ok || !strings.Contains(no.Error(), a.Refused) || no.Hint() == "" {
			t.Errorf("%+v, %v", out, err)
		}
		return
	}
	if err != nil || out.Code != 0 || out.Text != a.Output {
		t.Errorf("%v, %+v, want\n%s", err, out, a.Output)
	}
	s.expect(r, far, "192.0.2.10:9000", -1)
}
