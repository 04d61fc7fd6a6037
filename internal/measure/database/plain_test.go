package database

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// elsewhere returns an address of the same server that could be another machine's.
func elsewhere(addr string) string { return strings.Replace(addr, "127.0.0.1", "0.0.0.0", 1) }

// greedyMySQL asks every client for the password, encrypted with its own key.
func greedyMySQL(t *testing.T, plugin string, got *atomic.Value) func(net.Conn) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := "\x01" + string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	return func(c net.Conn) {
		b := make([]byte, 4096)
		say := func(packet string) (answer int) {
			io.WriteString(c, packet)
			n, _ := c.Read(b)
			return n - 4
		}
		say(mysqlGreeting)
		const scrambled = 32
		if say(mysqlPacket(2, "\xfe"+plugin+"\x00saltsaltsaltsaltsalt\x00")) == scrambled {
			say(mysqlPacket(4, "\x01\x04")) // unknown scramble: requests the whole password
		}
		if say(mysqlPacket(b[3]+1, public)) == key.Size() {
			got.Store("the password")
		}
	}
}

func TestPasswordInTheClear(t *testing.T) {
	clearPG(t)
	const password = "hunter22"
	var got atomic.Value
	postgres := pgServer(func(p string) string {
		got.Store(p)
		return pgError("FATAL", "28P01", "thank you")
	}, nil)
	// no encryption
	prelogin := "\x00\x00\x0b\x00\x06\x01\x00\x11\x00\x01\xff" + "\x0f\x00\x00\x00\x00\x00" + "\x02"
	sqlserver := func(c net.Conn) {
		b := make([]byte, 4096)
		c.Read(b)
		io.WriteString(c, "\x04\x01\x00"+string(rune(8+len(prelogin)))+"\x00\x00\x01\x00"+prelogin)
		if n, _ := c.Read(b); n > 0 && b[0] == 0x10 {
			got.Store("a login")
		}
	}
	for _, tt := range []struct {
		name, dsn string // * is the server's address
		serve     func(net.Conn)
		told      bool
		hint      string
	}{
		{"postgres", "postgres://app@*/shop", postgres, false, "require_auth=password"},
		{"postgres-no-tls", "postgres://app@*/shop?sslmode=disable", postgres, false,
			"sslmode=verify-full"},
		{"postgres-allowed", "postgres://app@*/shop?require_auth=password", postgres, true, ""},
		{"mysql-key", "mysql://app@*/shop", greedyMySQL(t, "caching_sha2_password", &got), false,
			"allowCleartextPasswords=true"},
		{"mysql-sha256", "mysql://app@*/shop", greedyMySQL(t, "sha256_password", &got), false,
			"allowCleartextPasswords=true"},
		{"mysql-preferred", "mysql://app@*/shop?tls=preferred",
			greedyMySQL(t, "sha256_password", &got), false, "tls=true"},
		{"mysql-allowed", "mysql://app@*/shop?allowCleartextPasswords=true",
			greedyMySQL(t, "sha256_password", &got), true, ""},
		{"sqlserver", "sqlserver://app@*", sqlserver, false, "encrypt=disable"},
		{"sqlserver-trusted", "sqlserver://app@*?TrustServerCertificate=true", sqlserver, false,
			"encrypt=disable"},
		{"sqlserver-allowed", "sqlserver://app@*?encrypt=disable", sqlserver, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := serve(t, tt.serve)
			for _, where := range []string{elsewhere(addr), addr} {
				got.Store("")
				d, err := New(strings.Replace(tt.dsn, "*", where, 1),
					Options{Queries: 1, Password: password, Timeout: patience})
				if err != nil {
					t.Fatal(err)
				}
				_, err = d.Probe(context.Background())
				told := got.Load() != ""
				if want := tt.told || where == addr; told != want {
					t.Errorf("%s: the server was told %q: %v", where, got.Load(), err)
				}
				if !told {
					wants(t, err, "the server asks for the password in clear text", tt.hint)
				}
			}
		})
	}
}

func TestPasswordOverAnyTLS(t *testing.T) {
	clearPG(t)
	dir := t.TempDir()
	certificate(t, dir)
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	var got atomic.Value
	postgres := func(c net.Conn) {
		b := make([]byte, 4096)
		if n, _ := c.Read(b); n != 8 {
			return
		}
		io.WriteString(c, "S")
		c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		pgServer(func(p string) string {
			got.Store(p)
			return pgError("FATAL", "28P01", "thank you")
		}, nil)(c)
	}
	for option, told := range map[string]bool{"": false, "?sslmode=prefer": false,
		"?sslmode=require": true, "?sslmode=verify-full": false} {
		got.Store("")
		d, err := New("postgres://app@"+elsewhere(serve(t, postgres))+"/shop"+option,
			Options{Queries: 1, Password: "hunter22", Timeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = d.Probe(context.Background()); (got.Load() != "") != told {
			t.Errorf("%q: the server was told %q: %v", option, got.Load(), err)
		}
	}
}
