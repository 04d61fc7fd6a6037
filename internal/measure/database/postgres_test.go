package database

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const testPassword = "correct horse 'battery' %41&:/"

// postgres starts a private PostgreSQL in a user namespace, because it refuses root.
func postgres(t *testing.T) (port, dir string) {
	t.Helper()
	clearPG(t)
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		skipOrFail(t, "PostgreSQL is not installed: apt-get install postgresql")
	}
	slices.Sort(found)
	bin := filepath.Dir(found[len(found)-1])
	testversions.Ran(t, "PostgreSQL", testversions.Of(filepath.Join(bin, "postgres"), "--version"),
		"`toll sql`'s driver")
	dir, err := os.MkdirTemp("", "pg") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	pw := filepath.Join(dir, "pw")
	if err := os.WriteFile(pw, []byte(testPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getgid(), Size: 1}},
		}
		return cmd
	}
	out, err := run("initdb", "-D", data, "-U", "app", "-A", "scram-sha-256", "--pwfile", pw, "-N",
		"--no-locale", "-E", "UTF8").CombinedOutput()
	if err != nil {
		skipOrFail(t, "initdb: %v: %s", err, out)
	}
	port = strconv.Itoa(int(testnet.TCP(t).Port()))
	cert, key := certificate(t, dir)
	server := run("postgres", "-D", data, "-c", "ssl=on", "-c", "ssl_cert_file="+cert, "-c",
		"ssl_key_file="+key, "-c", "ssl_ca_file="+cert, "-p", port, "-k", dir, "-c", "listen_addresses=127.0.0.1", "-c",
		"fsync=off", "-c", "shared_buffers=16MB")
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Signal(syscall.SIGQUIT)
		server.Wait()
		if t.Failed() {
			t.Logf("PostgreSQL: %s", log.String())
		}
	})
	isReady := filepath.Join(bin, "pg_isready")
	if !testwait.Met(2*time.Minute, func() bool {
		return exec.Command(isReady, "-q", "-h", "127.0.0.1", "-p", port).Run() == nil
	}) {
		t.Fatalf("PostgreSQL does not start: %s", log.String())
	}
	return port, dir
}

// skipOrFail fails the test under CI=true.
func skipOrFail(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func segments(t testing.TB, s *Session) (in, out uint32) {
	t.Helper()
	raw, err := s.link.conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO)
		if err != nil {
			t.Fatal(err)
		}
		in, out = info.Data_segs_in, info.Data_segs_out
	})
	return in, out
}

func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	c, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	kb, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: c},
		key: {Type: "PRIVATE KEY", Bytes: kb}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestPostgres(t *testing.T) {
	port, dir := postgres(t)
	base := "postgres://app@127.0.0.1:" + port + "/postgres"
	open := func(t *testing.T, dsn string, o Options) *Session {
		t.Helper()
		if o.Password == "" {
			o.Password = testPassword
		}
		o.Timeout = max(o.Timeout, patience)
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
		for _, tt := range []struct{ option, tls string }{
			{"", "TLS 1.3"},
			{"?sslmode=disable", ""},
			{"?sslmode=verify-full&sslrootcert=" + url.QueryEscape(filepath.Join(dir, "cert.pem")),
				"TLS 1.3"},
			{"?sslmode=require&sslcertmode=require&sslcert=" +
				url.QueryEscape(filepath.Join(dir, "cert.pem")) + "&sslkey=" +
				url.QueryEscape(filepath.Join(dir, "key.pem")), "TLS 1.3"},
		} {
			d, err := New(base+tt.option, Options{Queries: 2, Password: testPassword})
			if err != nil {
				t.Fatal(err)
			}
			f, err := d.Probe(context.Background())
			if err != nil || !strings.HasPrefix(f.Server, "PostgreSQL ") ||
				strings.Contains(f.Server, "compiled") || f.Remote != "127.0.0.1:"+port ||
				f.TLS != tt.tls {
				t.Errorf("%s: %+v, %v", tt.option, f, err)
			}
		}
		probe(t, base+"?sslmode=verify-full", Options{Password: testPassword, Timeout: patience},
			"the server's certificate: x509: ")
	})
	t.Run("page", func(t *testing.T) {
		s := open(t, base, Options{Queries: 20})
		if s.Connect <= 0 {
			t.Errorf("connecting took %s", s.Connect)
		}
		for range 3 {
			sent, received := s.Bytes()
			var sum time.Duration
			n := 0
			page, err := s.Page(context.Background(), func(q time.Duration) { sum += q; n++ })
			if err != nil || n != 20 || sum != page || page <= 0 {
				t.Errorf("%d queries took %s, the page %s: %v", n, sum, page, err)
			}
			sent2, received2 := s.Bytes()
			if sent2-sent < 20*20 || received2-received < 20*1000 || received2-received > 20*2000 {
				t.Errorf("a page of %d bytes out and %d in", sent2-sent, received2-received)
			}
		}
		if rtt := s.RTT(); rtt <= 0 || rtt > time.Second {
			t.Errorf("RTT %s", rtt)
		}
		if err := s.Close(); err != nil || s.RTT() != 0 {
			t.Errorf("closed: %v, RTT %s", err, s.RTT())
		}
	})
	t.Run("one-round-trip", func(t *testing.T) {
		s := open(t, base, Options{Queries: 10})
		if _, err := s.Page(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		testwait.Unhindered(t, patience, func(u testing.TB) { // segments that are sent again count
			_, before := segments(t, s)
			if _, err := s.Page(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			if _, after := segments(t, s); after-before != 10 {
				u.Errorf("10 queries were %d segments with data", after-before)
			}
		})
	})
	t.Run("socket", func(t *testing.T) {
		s := open(t, "postgres:///postgres?user=app&port="+port+"&host="+url.QueryEscape(dir),
			Options{Queries: 2})
		if _, err := s.Page(context.Background(), nil); err != nil || s.RTT() != 0 ||
			!strings.HasPrefix(s.link.remote(), dir) {
			t.Errorf("%v, RTT %s, remote %s", err, s.RTT(), s.link.remote())
		}
	})
	t.Run("results", func(t *testing.T) {
		for _, q := range []string{"SELECT generate_series(1, 1000)", "SELECT 1 WHERE false",
			"SET work_mem = '8MB'", "", ";"} {
			s := open(t, base, Options{Queries: 2, Query: q})
			if _, err := s.Page(context.Background(), nil); err != nil {
				t.Errorf("%q: %v", q, err)
			}
		}
	})
	t.Run("pooler", func(t *testing.T) { // as if the second query met another connection
		const query = "DEALLOCATE ALL"
		probe(t, base, Options{Password: testPassword, Query: query, Timeout: patience},
			`query 2 of 3: ERROR: prepared statement`, "default_query_exec_mode=simple_protocol")
		for _, mode := range []string{"exec", "simple_protocol"} {
			s := open(t, base+"?default_query_exec_mode="+mode, Options{Queries: 2, Query: query})
			if _, err := s.Page(context.Background(), nil); err != nil {
				t.Errorf("%s: %v", mode, err)
			}
		}
	})
	t.Run("several-statements", func(t *testing.T) {
		const query = "SELECT 1; SELECT 2, repeat('x', 1000) FROM generate_series(1, 3); SET " +
			"work_mem = '8MB'"
		s := open(t, base+"?default_query_exec_mode=simple_protocol",
			Options{Queries: 5, Query: query})
		_, before := s.Bytes()
		if _, err := s.Page(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		if _, after := s.Bytes(); after-before < 5*3*1000 {
			t.Errorf("read %d bytes", after-before)
		}
		probe(t, base, Options{Password: testPassword, Query: query, Timeout: patience},
			"cannot insert multiple commands into a prepared statement (SQLSTATE 42601)")
		probe(t, base+"?default_query_exec_mode=simple_protocol", Options{Password: testPassword,
			Query: "SELECT 1; SELEC 1", Timeout: patience}, "syntax error")
	})
	t.Run("bad-query", func(t *testing.T) {
		s := open(t, base, Options{Queries: 2, Query: "SELEC 1"})
		for range 2 {
			_, err := s.Page(context.Background(), nil)
			wants(t, err, `query 1 of 2: ERROR: syntax error at or near "SELEC" (SQLSTATE 42601)`)
		}
	})
	t.Run("bad-row", func(t *testing.T) {
		s := open(t, base, Options{Queries: 2,
			Query: "SELECT 1/(5000-i) FROM generate_series(1, 10000) i"})
		_, err := s.Page(context.Background(), nil)
		wants(t, err, "division by zero")
	})
	t.Run("bad-password", func(t *testing.T) {
		probe(t, base, Options{Password: "hunter22", Timeout: patience}, "connect to 127.0.0.1:",
			"SQLSTATE 28P01", "check the user")
		probe(t, base, Options{Timeout: patience}, "--secret-env")
		probe(t, "postgres://nobody@127.0.0.1:"+port+"/postgres",
			Options{Password: "hunter22", Timeout: patience}, "SQLSTATE 28P01")
	})
	t.Run("environment", func(t *testing.T) {
		t.Setenv("PGPASSWORD", testPassword)
		d, err := New(base, Options{Queries: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Probe(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Run("bad-option", func(t *testing.T) {
		probe(t, base+"?no_such_option=1", Options{Password: testPassword, Timeout: patience},
			"no_such_option")
		probe(t, "postgres://app@127.0.0.1:"+port+"/nowhere",
			Options{Password: testPassword, Timeout: patience}, `"nowhere" does not exist`)
	})
	t.Run("slow", func(t *testing.T) {
		probe(t, base, Options{Password: testPassword, Query: "SELECT pg_sleep(60)",
			Timeout: 3 * time.Second}, "query 1 of 3: no complete answer within {timeout}")
	})
	t.Run("cancelled", func(t *testing.T) {
		s := open(t, base, Options{Queries: 2, Query: "SELECT pg_sleep(60)", Timeout: time.Minute})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		_, err := s.Page(ctx, nil)
		if wants(t, err, "query 1 of 2: context canceled"); !errors.Is(err, context.Canceled) {
			t.Error("the error is not context.Canceled")
		}
		if _, err := s.Page(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("large", func(t *testing.T) {
		probe(t, base, Options{Password: testPassword,
			Query:   "SELECT repeat('x', 1000000) FROM generate_series(1, 1000)",
			Timeout: time.Minute}, "more than 64 MiB")
	})
	t.Run("leaves-nothing", func(t *testing.T) {
		before := runtime.NumGoroutine()
		for range 5 {
			open(t, base, Options{Queries: 1}).Close()
			probe(t, base, Options{Password: testPassword, Query: "SELECT pg_sleep(60)",
				Timeout: 200 * time.Millisecond})
		}
		if !testwait.Met(patience, func() bool { return runtime.NumGoroutine() <= before }) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	})
}
