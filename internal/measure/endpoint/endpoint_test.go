package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const patience = 20 * time.Second

func TestParseAddresses(t *testing.T) {
	many := make([]string, maxAddresses)
	for i := range many {
		many[i] = fmt.Sprintf("http://h%d", i)
	}
	for _, tt := range []struct {
		name  string
		words []string
		want  []Address
		err   string
	}{
		{"none", nil, []Address{}, ""},
		{"host", []string{"http://h:80/v1"}, []Address{{Name: "h:80", URL: "http://h:80/v1"}}, ""},
		{"no-port", []string{"postgres://app@db/shop"},
			[]Address{{Name: "db", URL: "postgres://app@db/shop"}}, ""},
		{"ipv6", []string{"http://[::1]:80"}, []Address{{Name: "[::1]:80", URL: "http://[::1]:80"}},
			""},
		{"named", []string{"lan=http://h", "v.p-n_2=http://h"},
			[]Address{{Name: "lan", URL: "http://h"}, {Name: "v.p-n_2", URL: "http://h"}}, ""},
		{"equals-in-query", []string{"http://h/?a=b"}, []Address{{Name: "h", URL: "http://h/?a=b"}},
			""},
		{"named-equals", []string{"a=http://h/?a=b"}, []Address{{Name: "a", URL: "http://h/?a=b"}},
			""},
		{"longest-name", []string{strings.Repeat("n", 40) + "=x"},
			[]Address{{Name: strings.Repeat("n", 40), URL: "x"}}, ""},
		{"not-a-url", []string{"a=whatever"}, []Address{{Name: "a", URL: "whatever"}}, ""},
		{"socket-named", []string{"s=postgres:///shop?host=/run"},
			[]Address{{Name: "s", URL: "postgres:///shop?host=/run"}}, ""},
		{"most", many, nil, ""},

		{"too-many", append(slices.Clone(many), "http://h"), nil, "33 endpoints, at most 32 can be compared"},
		{"empty", []string{"http://h", ""}, nil, "endpoint 2 has no address"},
		{"empty-named", []string{"a="}, nil, "endpoint 1 has no address"},
		{"empty-name", []string{"=http://h"}, nil, "endpoint 1 is neither NAME=URL nor a URL with a host"},
		{"long-name", []string{strings.Repeat("n", 41) + "=x"}, nil, "endpoint 1 is neither NAME=URL nor a URL with a host"},
		{"odd-name", []string{"a b=http://h"}, nil, "endpoint 1 is neither NAME=URL nor a URL with a host"},
		{"no-scheme", []string{"h:80"}, nil, "endpoint 1 is neither NAME=URL nor a URL with a host"},
		{"no-host", []string{"postgres:///shop"}, nil, "endpoint 1 has no host to be called by: name it, as in db=URL"},
		{"bare-ipv6", []string{"http://::1:80"}, nil,
			"endpoint 1 has an IPv6 address without brackets: write [::1]:8080"},
		{"named-bare-ipv6", []string{"a=postgres://u@fd00::1/db"}, nil,
			"endpoint 1 has an IPv6 address without brackets: write [::1]:8080"},
		{"port-0", []string{"http://h:0/v1"}, nil,
			"endpoint 1 has a port that is not from 1 to 65535"},
		{"large-port", []string{"a=http://[::1]:65536"}, nil,
			"endpoint 1 has a port that is not from 1 to 65535"},
		{"newline", []string{"http://h\n"}, nil, "endpoint 1 is neither NAME=URL nor a URL with a host"},
		{"twice", []string{"http://h/v1", "http://h/v2"}, nil,
			"two endpoints are called h: name them, as in published=URL"},
		{"twice-named", []string{"h:1", "a=http://h", "a=http://g"}[1:], nil,
			"two endpoints are called a: name them, as in published=URL"},
		{"name-of-a-host", []string{"http://h", "h=http://g"}, nil, "two endpoints are called h: name them, as in published=URL"},

		{"password-slash", []string{"postgres://app:12/hunter22@db/shop"}, nil,
			"endpoint 1 has an @ after its host: write %40 there, and no password at all"},
		{"password-hash", []string{"mysql://app:12#hunter22@db/shop"}, nil,
			"endpoint 1 has an @ after its host: write %40 there, and no password at all"},
		{"password-question", []string{"a=http://app:12?hunter22@db/v1"}, nil,
			"endpoint 1 has an @ after its host: write %40 there, and no password at all"},
		{"password-slashes", []string{"//app:12/hunter22@db"}, nil,
			"endpoint 1 has an @ after its host: write %40 there, and no password at all"},
		{"password-no-port", []string{"http://app:hunter/22@db"}, nil,
			"endpoint 1 has an @ after its host: write %40 there, and no password at all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseAddresses(tt.words)
			switch {
			case tt.err != "":
				if err == nil || err.Error() != tt.err || got != nil {
					t.Errorf("%+v, %v; want %q", got, err, tt.err)
				}
			case err != nil:
				t.Error(err)
			case tt.want != nil && !slices.Equal(got, tt.want), len(got) != len(tt.words):
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// A password where an address may have one must not be in an error or a name.
func FuzzParseAddresses(f *testing.F) {
	for _, w := range []string{
		"http://h:80/v1", "a=http://*@h", "postgres://app:*@db/shop", "a=mysql://app:*@db",
		"postgres://app@db/?password=*", "http://app:1/*@h",
		"http://app:1?*@h", "//app:1#*@h", "http://[::1]:1/?k=*", "app:*@tcp(db)/x", "=*", "a=*",
		"http://h/*", "a==*", "http:// /*",
	} {
		f.Add(w, "http://h")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		const secret = "1/xyzzy"
		if strings.Contains(a+b, "xyzzy") {
			t.Skip()
		}
		for _, at := range []string{":*@", "1/*@", "1?*@", "1#*@", "/*", "?k=*", "?password=*",
			"=*"} {
			a = strings.ReplaceAll(a, at, strings.ReplaceAll(at, "*", secret))
		}
		got, err := ParseAddresses([]string{a, b})
		if err != nil {
			if strings.Contains(err.Error(), "xyzzy") ||
				strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || got != nil {
				t.Errorf("%q, %q: %+v, error %q", a, b, got, err)
			}
			return
		}
		if len(got) != 2 || got[0].Name == got[1].Name {
			t.Errorf("%+v", got)
		}
		for i, w := range got {
			if w.Name == "" || w.URL == "" || !strings.HasSuffix([]string{a, b}[i], w.URL) {
				t.Errorf("%q is %+v", []string{a, b}[i], w)
			}
			if strings.Contains(w.Name, "xyzzy") {
				t.Errorf("%q: the name has the password: %q", a, w.Name)
			}
		}
	})
}

func TestAtOnce(t *testing.T) {
	broken := errors.New("broken")
	var running, most atomic.Int64
	err := atOnce(t.Context(), 8, func(ctx context.Context, i int) error {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		if i == 7 {
			return broken
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("session %d: %w", i, context.Cause(ctx))
		case <-time.After(patience):
			return errors.New("nobody stopped it")
		}
	})
	if !errors.Is(err, broken) || running.Load() != 0 {
		t.Errorf("%v, %d still run", err, running.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := atOnce(ctx, 2, func(ctx context.Context, _ int) error {
		return ctx.Err()
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := atOnce(t.Context(), 2, func(context.Context, int) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		xs   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{2, 1}, 2}, {[]float64{9, 1, 5}, 5}} {
		if got := median(tt.xs); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.xs, got, tt.want)
		}
	}
}
