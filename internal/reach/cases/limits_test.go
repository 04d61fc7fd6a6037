package cases

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// TestTryIsRefused runs toll where commands cannot be confined, or where the kernel refuses them
// only because they run in a copy: toll must not take that for a fault of the commands.
func TestTryIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "namespaces of a machine need root")
	}
	t.Parallel()
	m := start(t, &situation{cards: situations(t, "c01_hostport")[0].cards, setup: `docker0
server web web tcp/0.0.0.0:80
server machine own tcp/0.0.0.0:9100
iptables -A INPUT -p tcp --dport 9100 -j DROP
cp ` + pathtest.Toll(t) + ` /run/bin/toll
/run/bin/toll ports --save /run/machine.json >/run/list
chmod 644 /run/machine.json
cat >/run/many <<'R'
{ echo '*filter'; echo ':many - [0:0]'
for i in $(seq RULES); do echo "-A many -s 198.18.$((i/250)).$((i%250)) -j DROP"; done
echo COMMIT; } | iptables-restore --noflush
R`})
	// The kernel makes no user namespace for a process in a chroot, and no new /proc where parts of
	// the old one are covered.
	places := map[string]string{
		"no user namespace": "mkdir -p /run/root; mount --rbind / /run/root; exec chroot /run/root ",
		"no /proc":          "mount -t tmpfs none /proc/bus; exec ",
	}
	const saved = "setpriv --reuid=65534 --regid=65534 --clear-groups --reset-env env PATH=$PATH " +
		"/run/bin/toll ports --from-file /run/machine.json --try @"
	for _, c := range []struct {
		name, script string
		code         int
		says         []string
	}{
		{"no user namespace", places["no user namespace"] + "toll ports --try 'echo ran'", 3,
			[]string{"toll: error: --try: cannot try commands in a copy: ", "toll: hint: "}},
		{"no /proc", places["no /proc"] + "toll ports --try 'echo ran'", 3,
			[]string{"toll: error: --try: cannot try commands in a copy: "}},
		{"read-only /proc/sys", "mount --bind /proc/sys /proc/sys; " +
			"mount -o remount,bind,ro /proc/sys; exec toll ports", 0, []string{"a container manager has mounted /proc/sys read-only: open "}},
		{"a remedy without a user namespace", places["no user namespace"] + "toll ports 9100", 4,
			[]string{"This may admit ", "(not tried: "}},
		{"a remedy without /proc", places["no /proc"] + "toll ports 9100", 4,
			[]string{"This may admit ", "(not tried: "}},
		{"a file that a copy has not", "toll ports --try 'cat /run/machine.json; true'", 7,
			[]string{"A command may have failed only because it ran in a copy: cat: /run/machine.json: ",
				"What the commands printed"}},
		{"a file that a copy has not, and lines", "echo other machines reach no port >/run/lines; " +
			"toll ports --try 'cat /run/machine.json; true' --expect /run/lines", 7,
			[]string{"?: other machines reach no port: a command may have failed only because it "}},
		{"some rules, as a user", "sed s/RULES/100/ /run/many >/run/some; " + saved +
			"/run/some", 0, []string{"Nobody would gain or lose a port."}},
		{"many rules, as a user", "sed s/RULES/2000/ /run/many >/run/all; " + saved +
			"/run/all", 3, []string{`("Message too long")`, "toll: hint: try them with fewer rules at once"}},
		{"many rules, as root", "sed s/RULES/2000/ /run/many >/run/all; " +
			"toll ports --try @/run/all", 0, []string{"Nobody would gain or lose a port."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := m.command("unshare", "-m", "bash", "-ec", "PATH=/run/bin:$PATH; "+c.script)
			out, err := cmd.CombinedOutput()
			code := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				code = exit.ExitCode()
			}
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			text := string(bytes.Join(bytes.Fields(out), []byte(" "))) // wherever lines end
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, out)
				}
			}
		})
	}
}
