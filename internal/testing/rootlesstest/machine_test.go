package rootlesstest

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

func TestMachine(t *testing.T) {
	m := New(t)
	if got := m.Output(t, "id", "-un"); got != User {
		t.Errorf("the user is %q, not %q", got, User)
	}
	m.Output(t, "sh", "-c", "exec 3<>/dev/net/tun && touch $HOME/file $XDG_RUNTIME_DIR/file")
	// a user namespace with the user's subordinate numbers
	if got := m.Output(t, "rootlesskit", "sh", "-c", "id -u; wc -l </proc/self/uid_map"); got != "0\n2" {
		t.Errorf("in a user namespace: %q", got)
	}
	if err := m.Command("sh", "-c", "echo >/etc/file").Run(); err == nil {
		t.Error("the user may write to /etc")
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil || strings.Contains(string(passwd), User) {
		t.Errorf("the machine of the tests has the user: %v", err)
	}
	var l net.Listener
	err = m.Beyond.Do(func() (err error) { l, err = net.Listen("tcp", ":0"); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			peer <- err.Error()
			return
		}
		defer c.Close()
		peer <- c.RemoteAddr().(*net.TCPAddr).IP.String()
	}()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	m.Output(t, "bash", "-c", "exec 3<>/dev/tcp/"+Beyond.Addr().String()+"/"+port)
	if got := <-peer; got != Address.Addr().String() {
		t.Errorf("beyond the wire comes %s", got)
	}
}

func TestDocker(t *testing.T) {
	for _, e := range pathtest.Engines(t) {
		t.Run(e.Name, func(t *testing.T) {
			m := New(t)
			d := m.Docker(t, e, nil)
			out, err := d.Command("info", "-f", "{{.SecurityOptions}}").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "name=rootless") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
