package fast

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// clientsEnv enables the tests with third-party programs: make test-fast-clients.
const clientsEnv = "BRIDGETOLL_TEST_FAST_CLIENTS"

func serveHTTP() {
	err := http.ListenAndServe(":80", http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				_, _ = io.Copy(w, r.Body)
				return
			}
			host, _, _ := net.SplitHostPort(r.RemoteAddr)
			fmt.Fprintf(w, "http for %s\n", strings.TrimPrefix(host, "::ffff:"))
		}))
	fmt.Println(err)
	os.Exit(1)
}

func serveLLM() {
	err := http.ListenAndServe(":80", http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				_, _ = io.WriteString(w, `{"data":[{"id":"tiny"}]}`)
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			for range 20 {
				_, _ = io.WriteString(
					w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(3 * time.Millisecond)
			}
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
		}))
	fmt.Println(err)
	os.Exit(1)
}

func serveUDP() {
	c, err := net.ListenPacket("udp", ":80")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	b := make([]byte, 2000)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			os.Exit(1)
		}
		_, _ = c.WriteTo(b[:n], from)
	}
}

const ofMachine = "-v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro -v /bin:/bin:ro -v " +
	"/etc:/etc:ro --tmpfs /tmp:exec --tmpfs /run --tmpfs /var "

// python and java print the answer, the client's address and its peer's, without the port that the
// kernel chose.
const python = `import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM) if sys.argv[3:] else None
if s: s.connect((sys.argv[1], int(sys.argv[2])))
else: s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60)
print(s.makefile().readline().strip(), "own", s.getsockname()[0], "peer", s.getpeername()[:2])`

const java = `import java.io.*; import java.net.*;
public class Client { public static void main(String[] a) throws Exception { try (Socket s = new Socket(a[0], Integer.parseInt(a[1]))) {
String line = new BufferedReader(new InputStreamReader(s.getInputStream())).readLine();
System.out.println(line + " own " + s.getLocalAddress().getHostAddress() + " peer " + s.getRemoteSocketAddress()); } } }`

const connectedUDP = `import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20); s.connect(("127.0.0.1", 8085)); s.send(b"there")
print(s.recv(100).decode(), s.getpeername(), s.getsockname()[0])`

// Real programs print the same with and without fast. Their connections take shortcuts, except
// where fast leaves them alone.
func TestBesideClients(t *testing.T) {
	if os.Getenv(clientsEnv) == "" {
		t.Skip(clientsEnv + " is not set: make test-fast-clients")
	}
	withEngine(t)
	dir := t.TempDir()
	data := make([]byte, 16<<20)
	_, _ = rand.Read(data)
	file := filepath.Join(dir, "data")
	if err := errors.Join(os.WriteFile(file, data, 0o600), os.WriteFile(filepath.Join(dir, "Client.java"), []byte(java), 0o600)); err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	container(t, "web", "-p 8080:80")
	launchAs(t, "http", "-p 8081:80", "/self serve-http")
	launchAs(t, "cache", ofMachine+"-p 8082:6379",
		"/usr/bin/redis-server --protected-mode no --save ''")
	pg := strings.TrimSpace(run(t, "ls -d /usr/lib/postgresql/*/bin | tail -1"))
	user := strings.TrimSpace(run(t, "id -u postgres")) // the engine looks up names in the image
	launchAs(t, "base", ofMachine+"-p 8083:5432 -u "+user+" -e PGDATA=/tmp/d --entrypoint /bin/sh",
		"-c '"+pg+"/initdb -A trust >/dev/null && echo host all all all trust "+
			">>/tmp/d/pg_hba.conf && "+
			"exec "+pg+"/postgres -k /tmp -c listen_addresses=*'")
	launchAs(t, "echo", "-p 8085:80/udp", "/self serve-udp")
	works := func(command string) bool { return exec.Command("sh", "-c", command).Run() == nil }
	testwait.Until(t, patience, "http serves", func() bool {
		return works("curl -sf http://127.0.0.1:8081/")
	})
	testwait.Until(t, patience, "redis serves", func() bool {
		return works("redis-cli -p 8082 ping | grep -q PONG")
	})
	testwait.Until(t, patience, "PostgreSQL serves", func() bool {
		return works(psql + "-c 'select 1'")
	})
	run(
		t,
		psql+"-c 'create database bench'; pgbench -i -q -s 1 -h 127.0.0.1 -p 8083 -U "+
			"postgres bench")

	programs := []struct {
		name, command string
		want          string // a regular expression
		alone         bool
	}{
		{"curl", "curl -s http://127.0.0.1:8081/ -w '%{remote_ip} %{remote_port} %{local_ip}'",
			`^http for 172\.17\.0\.1 127\.0\.0\.1 8081 127\.0\.0\.1$`, false},
		{"curl-localhost", "curl -s http://localhost:8081/", `^http for 172\.17\.0\.1$`, false},
		{"curl-v6", "curl -s http://[::1]:8081/ -w '%{remote_ip} %{local_ip}'",
			`^http for 172\.17\.0\.1 ::1 ::1$`, false},
		{"curl-upload", "curl -s -T " + file + " http://127.0.0.1:8081/ | sha256sum", "^" + sum,
			false},
		{"curl-bound", "curl -s --interface 127.0.0.1 http://127.0.0.1:8081/ -w '%{local_ip}'",
			`^http for 172\.17\.0\.1 127\.0\.0\.1$`, true},
		{"wrk", "wrk -t1 -c50 -d2s http://127.0.0.1:8081/",
			`^Running .* [1-9]\d* requests in .*Transfer/sec: \S+$`, false},
		{"psql", psql + "-c 'select inet_client_addr(), count(*) from generate_series(1, 100000)'",
			`^172\.17\.0\.1\|100000$`, false},
		{"pgbench", "pgbench -h 127.0.0.1 -p 8083 -U postgres -c 4 -t 100 -n bench 2>&1",
			`number of transactions actually processed: 400/400 number of failed transactions: 0 `,
			false},
		{"pgbench-connects",
			"pgbench -h localhost -p 8083 -U postgres -c 2 -t 50 -n -C -S bench 2>&1",
			`number of transactions actually processed: 100/100 number of failed transactions: 0 `,
			false},
		{"redis", "redis-cli -p 8082 client list", `addr=172\.17\.0\.1:`, false},
		{"redis-benchmark",
			"redis-benchmark -p 8082 -n 10000 -c 50 -t set,get,lrange_100 -q | tr '\\r' '\\n' | " +
				"grep -c 'requests per second, p50'", `^4$`, false},
		{"python", "python3 -c '" + python + "' 127.0.0.1 8080",
			`^web for 172\.17\.0\.1 own 127\.0\.0\.1 peer \('127\.0\.0\.1', 8080\)$`, false},
		{"python-localhost", "python3 -c '" + python + "' localhost 8080",
			`^web for 172\.17\.0\.1 own (127\.0\.0\.1|::1) peer`, false},
		{"python-mapped", "python3 -c '" + python + "' ::ffff:127.0.0.1 8080 six",
			`^web for 172\.17\.0\.1 own ::ffff:127\.0\.0\.1 peer \('::ffff:127\.0\.0\.1', 8080\)$`,
			false},
		{"java", "java -XX:TieredStopAtLevel=1 " + dir + "/Client.java 127.0.0.1 8080",
			`^web for 172\.17\.0\.1 own 127\.0\.0\.1 peer /127\.0\.0\.1:8080$`, false},
		{"java-localhost", "java -XX:TieredStopAtLevel=1 " + dir + "/Client.java localhost 8080",
			`^web for 172\.17\.0\.1 own (127\.0\.0\.1|0:0:0:0:0:0:0:1) peer localhost/`, false},
		{"udp", "python3 -c '" + connectedUDP + "'",
			`^there \('127\.0\.0\.1', 8085\) 127\.0\.0\.1$`, true},
	}
	say := func(command string) string {
		out, err := exec.Command("bash", "-c", command).CombinedOutput()
		text := strings.Join(strings.Fields(string(out)), " ")
		if err != nil {
			return fmt.Sprintf("%s (%v)", text, err)
		}
		return text
	}
	for _, p := range programs { // first with docker-proxy
		if got := say(p.command); !regexp.MustCompile(p.want).MatchString(got) ||
			strings.Contains(got, "Socket errors") {
			t.Errorf("%s with docker-proxy: %s", p.name, got)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	turnOn(t)
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			n := taken(t)
			got := say(p.command)
			if !regexp.MustCompile(p.want).MatchString(got) ||
				strings.Contains(got, "Socket errors") {
				t.Errorf("%s", got)
			}
			if now := taken(t); p.alone == (now > n) {
				t.Errorf("%d connections took a shortcut", now-n)
			}
		})
	}
	t.Run("short", func(t *testing.T) { crowd(t, 10000, 16, false) })
	t.Run("parallel", func(t *testing.T) { crowd(t, 1000, 1000, true) })
}

const psql = "psql -h 127.0.0.1 -p 8083 -U postgres -At "

// crowd makes connections that take the shortcut and exchange data. With together, none sends
// before all are open.
func crowd(t *testing.T, connections, atOnce int, together bool) {
	t.Helper()
	n := taken(t)
	var all, open sync.WaitGroup
	var wrong, done atomic.Int64
	turns := make(chan struct{}, atOnce)
	if together {
		open.Add(connections)
	}
	one := func(i int) error {
		c, err := net.Dial("tcp", "127.0.0.1:8080")
		if together {
			open.Done()
		}
		if err != nil {
			return err
		}
		defer c.Close()
		if got := greeting(c); got != "web for 172.17.0.1" {
			return errors.New(got)
		}
		open.Wait()
		want := fmt.Appendf(nil, "%08d", i)
		if _, err := c.Write(want); err != nil {
			return err
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("%q came back, %w", got, err)
		}
		done.Add(1)
		return nil
	}
	for i := range connections {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if err := one(i); err != nil && wrong.Add(1) < 5 {
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	all.Wait()
	s, err := Look(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if now := taken(t); done.Load() != int64(connections) || now-n != uint64(connections) {
		t.Errorf("%d of %d connections were answered, %d took the shortcut: %+v", done.Load(),
			connections, now-n, s)
	}
}

func launchAs(t *testing.T, name, options, command string) {
	t.Helper()
	run(t, fmt.Sprintf("docker run -d --stop-timeout 0 --name %s %s %s %s", name, options, image,
		command))
}
