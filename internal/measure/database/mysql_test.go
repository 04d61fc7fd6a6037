package database

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func mariadb(t *testing.T) (port, socket string) {
	t.Helper()
	program, err := exec.LookPath("mariadbd")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/mariadbd"); err != nil {
			skipOrFail(t, "MariaDB is not installed: apt-get install mariadb-server-core")
		}
	}
	testversions.Ran(t, "MariaDB", testversions.Of(program, "--version"), "`toll sql`'s driver")
	dir, err := os.MkdirTemp("", "my") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	cert, key := certificate(t, dir)
	quoted := "'" + strings.ReplaceAll(testPassword, "'", "''") + "'"
	// mariadb-install-db takes seconds for all tables.
	setup := filepath.Join(dir, "setup.sql")
	if err := os.WriteFile(setup, []byte(systemTables()+`
CREATE USER app@'127.0.0.1' IDENTIFIED BY `+quoted+`;
CREATE USER app@localhost IDENTIFIED BY `+quoted+`;
CREATE USER safe@'127.0.0.1' IDENTIFIED BY `+quoted+` REQUIRE SSL;
CREATE DATABASE shop;
GRANT ALL ON shop.* TO app@'127.0.0.1', app@localhost, safe@'127.0.0.1';
`), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.Command(program, append([]string{
			"--no-defaults", "--datadir=" + data, "--innodb-log-file-size=4M",
			"--innodb-buffer-pool-size=8M",
			"--innodb-flush-log-at-trx-commit=0", "--skip-log-bin",
			"--character-set-server=utf8mb4"}, args...)...)
		if os.Getuid() == 0 {
			cmd.Args = append(cmd.Args, "--user=root")
		}
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		var log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &log, &log
		return cmd, &log
	}
	boot, log := run("--bootstrap", "--skip-grant-tables", "--silent-startup")
	text, err := os.Open(setup)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	boot.Stdin = text
	if err := boot.Run(); err != nil {
		skipOrFail(t, "mariadbd --bootstrap: %v: %s", err, log)
	}
	port, socket = strconv.Itoa(int(testnet.TCP(t).Port())), filepath.Join(dir, "s")
	server, log := run("--port="+port, "--bind-address=127.0.0.1", "--socket="+socket,
		"--pid-file="+filepath.Join(dir, "pid"), "--skip-name-resolve",
		"--ssl-cert="+cert, "--ssl-key="+key, "--ssl-ca="+cert)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Signal(syscall.SIGKILL)
		server.Wait()
		if t.Failed() {
			t.Logf("MariaDB: %s", log)
		}
	})
	if !testwait.Met(2*time.Minute, func() bool {
		_, err := os.Stat(socket)
		return err == nil
	}) {
		t.Fatalf("MariaDB does not start: %s", log)
	}
	return port, socket
}

func systemTables() string {
	b, _ := os.ReadFile("/usr/share/mysql/mysql_system_tables.sql")
	return "CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket=NULL, " +
		"@skip_auth_anonymous=1;\n" + string(b) + "\nFLUSH PRIVILEGES;\n"
}

func TestMariaDB(t *testing.T) {
	port, socket := mariadb(t)
	base := "mysql://app@127.0.0.1:" + port + "/shop"
	open := func(t *testing.T, dsn string, o Options) *Session {
		t.Helper()
		o.Password, o.Timeout = testPassword, max(o.Timeout, patience)
		d, err := New(dsn, o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Open(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	t.Run("probe", func(t *testing.T) {
		for _, tt := range []struct{ dsn, tls string }{{base, ""},
			{base + "?tls=skip-verify", "TLS 1.3"},
			{"mysql://safe@127.0.0.1:" + port + "/shop?tls=skip-verify", "TLS 1.3"}} {
			d, err := New(tt.dsn, Options{Queries: 2, Password: testPassword, Timeout: patience})
			if err != nil {
				t.Fatal(err)
			}
			f, err := d.Probe(context.Background())
			if err != nil || !strings.HasPrefix(f.Server, "MariaDB 1") ||
				f.Remote != "127.0.0.1:"+port || f.TLS != tt.tls {
				t.Errorf("%s: %+v, %v", tt.dsn, f, err)
			}
		}
		probe(t, base+"?tls=true", Options{Password: testPassword, Timeout: patience},
			"certificate")
		probe(t, "mysql://safe@127.0.0.1:"+port+"/shop",
			Options{Password: testPassword, Timeout: patience}, "Access denied")
	})
	t.Run("page", func(t *testing.T) {
		s := open(t, base, Options{Queries: 20})
		sent, received := s.Bytes()
		n := 0
		if _, err := s.Page(context.Background(), func(time.Duration) {
			n++
		}); err != nil || n != 20 {
			t.Fatalf("%d queries: %v", n, err)
		}
		if sent2, received2 := s.Bytes(); sent2-sent < 20*20 || received2-received < 20*1000 ||
			received2-received > 20*2000 {
			t.Errorf("a page of %d bytes out and %d in", sent2-sent, received2-received)
		}
		if s.Connect <= 0 || s.RTT() <= 0 || s.LookUp() != 0 {
			t.Errorf("connecting took %s, RTT %s, look-up %s", s.Connect, s.RTT(), s.LookUp())
		}
		if sent, resent, late := s.Lost(); sent == 0 || resent > 20 || late > 20 {
			t.Errorf("%d segments sent again, %d out of order", resent, late)
		}
	})
	t.Run("socket", func(t *testing.T) {
		s := open(t, "mysql://app@/shop?socket="+url.QueryEscape(socket), Options{Queries: 2})
		if _, err := s.Page(context.Background(), nil); err != nil || s.RTT() != 0 {
			t.Errorf("%v, RTT %s", err, s.RTT())
		}
	})
	t.Run("results", func(t *testing.T) {
		for _, q := range []string{"SELECT seq FROM seq_1_to_1000",
			"SELECT 1 FROM DUAL WHERE false", "SET @x = 1", "SELECT NULL"} {
			_, err := open(t, base, Options{Queries: 2, Query: q}).Page(context.Background(), nil)
			if err != nil {
				t.Errorf("%q: %v", q, err)
			}
		}
	})
	t.Run("bad-query", func(t *testing.T) {
		s := open(t, base, Options{Queries: 2, Query: "SELEC 1"})
		for range 2 {
			_, err := s.Page(context.Background(), nil)
			wants(t, err, "query 1 of 2: ERROR 1064", "SELEC 1")
		}
	})
	t.Run("bad-password", func(t *testing.T) {
		probe(t, base, Options{Password: "hunter22", Timeout: patience}, "connect to 127.0.0.1:",
			"Access denied", "check the user")
	})
	t.Run("bad-database", func(t *testing.T) {
		probe(t, "mysql://app@127.0.0.1:"+port+"/nowhere",
			Options{Password: testPassword, Timeout: patience}, "nowhere")
	})
	t.Run("slow", func(t *testing.T) {
		probe(t, base, Options{Password: testPassword, Query: "SELECT SLEEP(60)"},
			"query 1 of 3: no complete answer within {timeout}")
	})
}
