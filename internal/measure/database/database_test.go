package database

import (
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
)

func clearPG(t testing.TB) {
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "PG") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("PGPASSFILE", "/nonexistent")
}

func TestNew(t *testing.T) {
	clearPG(t)
	for _, tt := range []struct{ name, dsn, printed, where string }{
		{"postgres", "postgres://app@10.0.0.5/shop", "postgres://app@10.0.0.5/shop",
			"10.0.0.5:5432"},
		{"postgresql", "postgresql://app@db:5433/shop?sslmode=disable", "", "db:5433"},
		{"postgres-v6", "postgres://app@[::1]:5433/shop", "", "[::1]:5433"},
		{"postgres-socket", "postgres:///shop?host=/run/postgresql&user=app", "",
			"/run/postgresql/.s.PGSQL.5432"},
		{"postgres-scheme", "POSTGRES://app@db/shop", "postgres://app@db/shop", "db:5432"},
		{"postgres-passfile", "postgres://app@db/?passfile=%2Fx&sslkey=", "", "db:5432"},
		{"postgres-maybe", "postgres://app@db/?my.api_key=abc",
			"postgres://app@db/?my.api_key=xxxxx", "db:5432"},
		{"mysql", "mysql://app@10.0.0.5/shop", "", "10.0.0.5:3306"},
		{"mysql-v6", "mysql://app@[fe80::1]:99/shop?tls=skip-verify", "", "[fe80::1]:99"},
		{"mysql-socket", "mysql://app@/shop?socket=/run/mysqld/mysqld.sock", "",
			"/run/mysqld/mysqld.sock"},
		{"mysql-options",
			"mysql://app@db/shop?charset=utf8mb4,utf8&loc=Europe%2FBerlin&readTimeout=5s", "",
			"db:3306"},
		{"sqlserver", "sqlserver://sa@10.0.0.5?database=shop", "", "10.0.0.5:1433"},
		{"sqlserver-slash", "sqlserver://sa@db:1444/?encrypt=true", "", "db:1444"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := New(tt.dsn, Options{Queries: 1})
			if err != nil {
				t.Fatal(err)
			}
			if tt.printed == "" {
				tt.printed = tt.dsn
			}
			if d.String() != tt.printed || d.target.where != tt.where {
				t.Errorf("got %q at %q, want %q at %q", d, d.target.where, tt.printed, tt.where)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	clearPG(t)
	const secret = "hunter22"
	for _, tt := range []struct{ name, dsn, words string }{
		{"empty", "", "is not a URL"},
		{"keywords", "host=db password=hunter22", "is not a URL"},
		{"mysql-own", "app:hunter22@tcp(db:3306)/shop", "is not a URL"},
		{"scheme", "oracle://app:hunter22@db",
			"not one of postgres://, postgresql://, mysql://, sqlserver://"},
		{"password", "postgres://app:hunter22@db/shop", "contains a password"},
		{"password-empty", "mysql://app:@db/shop", "contains a password"},
		{"password-slash", "postgres://app:12/hunter22@db/shop", "after its host"},
		{"password-hash", "mysql://app:12#hunter22@db/shop", "after its host"},
		{"password-question", "sqlserver://app:12?hunter22@db/shop", "after its host"},
		{"password-percent", "postgres://app:%zzhunter22@db/shop", "cannot be read as a URL"},
		{"password-port", "postgres://app:hunter22/shop", "cannot be read as a URL"},
		{"option-password", "postgres://app@db/shop?password=hunter22", "contains a password"},
		{"option-escaped", "postgres://app@db/shop?pass%77ord=hunter22", "contains a password"},
		{"option-ssl", "postgres://app@db/shop?sslpassword=hunter22", "contains a password"},
		{"option-pwd", "sqlserver://app@db?PWD=hunter22", "contains a password"},
		{"option-change", "sqlserver://app@db?change+password=hunter22", "contains a password"},
		{"option-secret", "sqlserver://app@db?ClientSecret=hunter22", "contains a password"},
		{"option-mode", "postgres://app@db/shop?default_query_exec_mode=fast",
			"has a value that is not known"},
		{"option-odd", "postgres://app@db?a%00b=1", "characters that are not allowed"},
		{"option-twice", "postgres://app@db?a=1&a=2", "2 times"},
		{"semicolon", "sqlserver://app@db?a=1;b=2", "query string cannot be read"},
		{"no-host", "postgres:///shop", "no host"},
		{"no-host-mysql", "mysql://app@/shop", "no host"},
		{"hosts", "postgres://app@a,b/shop", "not one name"},
		{"hosts-option", "postgres:///shop?host=a,b", "not one name"},
		{"two-hosts", "postgres://app@a/shop?host=b", "name one of them"},
		{"socket", "mysql:///shop?socket=run", "is not a path"},
		{"port-big", "mysql://app@db:65536/shop", "1 to 65535"},
		{"port-0", "sqlserver://app@db:0", "1 to 65535"},
		{"port-none", "sqlserver://app@db:", "port"},
		{"port-option", "postgres:///shop?host=/run&port=x", "1 to 65535"},
		{"postgres-option", "postgres://app@db?sslmode=hunter", "sslmode"},
		{"postgres-file", "postgres://app@db?sslrootcert=/nonexistent", "/nonexistent"},
		{"service", "postgres://app@db?service=x", "another server"},
		{"mysql-option", "mysql://app@db/shop?parseTime=maybe", "maybe"},
		{"mysql-tls", "mysql://app@db/shop?tls=mine", "mine"},
		{"mysql-files", "mysql://app@db/shop?AllowAllFiles=1", "any file"},
		{"mysql-strict", "mysql://app@db/shop?strict=1", "no longer"},
		{"mysql-compress", "mysql://app@db/shop?compress=1", "any amount"},
		{"sqlserver-option", "sqlserver://app@db?encrypt=maybe", "maybe"},
		{"sqlserver-instance", "sqlserver://app@db/SQLEXPRESS", "an instance's name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.dsn, Options{Queries: 1, Password: secret})
			e := wants(t, err, tt.words)
			if strings.Contains(e.Error()+e.Hint(), secret) || e.Hint() == "" {
				t.Errorf("error %q, hint %q", e, e.Hint())
			}
		})
	}
	for _, o := range []Options{{}, {Queries: -1}, {Queries: 1, Timeout: -1}} {
		if _, err := New("mysql://app@db", o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestServer(t *testing.T) {
	for _, tt := range []struct{ scheme, version, want string }{
		{"postgres",
			"PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc",
			"PostgreSQL 15.14 (Debian 15.14-0+deb12u1)"},
		{"mysql", "8.4.3", "MySQL 8.4.3"},
		{"mysql", "10.11.6-MariaDB-0+deb12u1", "MariaDB 10.11.6"},
		{"sqlserver",
			"Microsoft SQL Server 2022 (RTM-CU9) (KB5030731) - 16.0.4085.2 (X64) Sep 27 2023",
			"Microsoft SQL Server 2022 (RTM-CU9) (KB5030731) 16.0.4085.2"},
		{"sqlserver", "Babelfish", "Babelfish"},
	} {
		if p, _ := findProduct(tt.scheme); p.server(tt.version) != tt.want {
			t.Errorf("%q: got %q, want %q", tt.version, p.server(tt.version), tt.want)
		}
	}
}

// A password wherever a DSN may have one must never be printed.
func FuzzNew(f *testing.F) {
	for _, dsn := range []string{
		"postgres://app@db/shop", "postgres://app:*@db/shop?sslmode=x",
		"mysql://app@db:3306/shop?tls=true&pwd=*",
		"mysql://app:*@[::1]/x?socket=/run", "sqlserver://app:*@db?database=x&encrypt=true",
		"sqlserver://:1#*@b?d", "app:*@tcp(db)/x",
		"postgres:///x?host=/run&port=1&pass%77ord=*", "postgresql://a:1/*@b/c",
		"mysql://a:1?*@b/c",
		"mysql://app@db:3306/shop tls=true&pwd=*",
	} {
		f.Add(dsn, "hunter22")
	}
	clearPG(f)
	f.Fuzz(func(t *testing.T, dsn, p string) {
		if strings.ContainsAny(p, "*") || strings.Contains(dsn, "xyzzy") {
			t.Skip()
		}
		p = "xyzzy" + p
		for _, s := range []string{p, url.QueryEscape(p)} {
			d := dsn
			for _, at := range []string{":*@", "1/*@", "1?*@", "1#*@", "?pwd=*", "&pwd=*",
				"?password=*", "&pass%77ord=*"} {
				d = strings.ReplaceAll(d, at, strings.ReplaceAll(at, "*", s))
			}
			got, err := New(d, Options{Queries: 1, Password: p})
			if err != nil {
				if h := (*Error)(nil); !errors.As(err, &h) ||
					strings.Contains(h.Error()+h.Hint(), "xyzzy") {
					t.Errorf("%q: error %q", d, err)
				}
				continue
			}
			if strings.Contains(got.String(), "xyzzy") {
				t.Errorf("%q: printed as %q", d, got)
			}
		}
	})
}
