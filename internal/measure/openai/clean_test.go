package openai

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestKeyIsNeverPrinted(t *testing.T) {
	const key = `sk-Test"<5/8>&+\9`
	escaped := strings.ReplaceAll(strings.ReplaceAll(key, `\`, `\\`), `"`, `\"`)
	raw := []string{
		key + "\r\n",
		"HTTP/1.1 " + key + " " + key + "\r\n\r\n",
		"HTTP/1.1 401 " + key + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" + key + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + key + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: " + key + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: a/b" + key + "\r\n\r\n" + key,
		"HTTP/1.1 302 Found\r\nLocation: /" + url.PathEscape(key) + "?k=" + url.QueryEscape(key) +
			"\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: " + key + "\r\n\r\n",
		head + key + "\r\n",
		head + inChunks("data: "+key+"\n\n"),
		head + inChunks("error: "+key+"\n\n"),
		head + inChunks("event: error\ndata: "+key+"\n\n"),
		head + inChunks("data: {\"error\":\""+escaped+"\"}\n\n"),
		head + inChunks("data: {\"error\":{\"message\":\"Bearer "+escaped+"\"}}\n\n"),
		head + inChunks("data: {\"error\":{\"input\":\"\\u0073"+escaped[1:]+"\"}}\n\n"),
	}
	for _, text := range []string{
		key, strings.ToUpper(key), escaped, html.EscapeString(key), url.QueryEscape(key),
		url.PathEscape(key), strconv.Quote(key),
		strings.Repeat("x", 190) + key, // at the cut
		strings.Repeat(key, 100_000),
		`{"error":"` + escaped + `"}`,
		key[:5] + "\n" + key[5:],
		`{"error":"` + escaped[:5] + `\n` + escaped[5:] + `"}`,
		`{"detail":[{"input":"Bearer ` + escaped + `"}]}`,
		`["\u0073` + escaped[1:] + `"]`,
	} {
		raw = append(raw, status("401 Unauthorized", text))
	}
	whole := "HTTP/1.1 401 Unauthorized\r\nContent-Length: 1000\r\n\r\n" // and then it breaks off
	raw = append(raw, whole+"key "+key[:len(key)-1], whole+`{"error":"`+key)
	// A server may quote the header in basic authentication's encoding, or escaped.
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
		for _, user := range []string{"", "Bearer ", "user:"} {
			encoded := enc.EncodeToString([]byte(user + key))
			raw = append(raw, status("401 Unauthorized", "Basic "+encoded),
				status("401 Unauthorized", url.QueryEscape(encoded)),
				whole+encoded[:len(encoded)-3])
		}
	}
	for _, format := range []string{"%%%02x", "%%%02X"} {
		raw = append(raw, status("401 Unauthorized", everyByte(key, format)))
	}
	// No decoded message may contain the key's front.
	const front = 6
	for i, r := range raw {
		e := endpoint(t, answering(t, r), Options{Model: "m", Key: key})
		_, err := session(t, e).Ask(t.Context())
		if err == nil {
			t.Errorf("response %d: no error", i)
			continue
		}
		for ; err != nil; err = errors.Unwrap(err) {
			for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err)} {
				for _, decoded := range decodings(text) {
					if strings.Contains(decoded, key[:front]) {
						t.Errorf("response %d: %s: %q", i, text, decoded)
					}
				}
				for _, form := range []string{key, escaped, html.EscapeString(key),
					url.QueryEscape(key), url.PathEscape(key), key[:len(key)-1]} {
					if strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
						t.Errorf("response %d: %s", i, text)
					}
				}
			}
		}
	}
}

func everyByte(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

var words = regexp.MustCompile(`[A-Za-z0-9+/_-]{4,}`)

func decodings(text string) (out []string) {
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	out = append(out, text)
	for _, word := range words.FindAllString(text, -1) {
		word = strings.NewReplacer("-", "+", "_", "/").Replace(word)
		for skip := range min(4, len(word)) {
			whole := word[skip : len(word)-(len(word)-skip)%4]
			b, _ := base64.RawStdEncoding.DecodeString(whole)
			out = append(out, string(b))
		}
	}
	return out
}

func TestKeyIsInNoFact(t *testing.T) {
	const key = "sk-123456"
	list := "HTTP/1.1 200 OK\r\nContent-Length: 31\r\nConnection: close\r\n\r\n" +
		`{"data":[{"id":"m/sk-123456"}]}`
	stream := strings.Replace(head, "\r\n", "\r\nServer: "+key+"\r\n", 1) +
		inChunks(says("a"), "data: {\"choices\":[{\"finish_reason\":\""+key+"\"}]}\n\n")
	n := 0
	e := endpoint(t, "http://server/?token=query-secret", Options{Key: key})
	e.dial = func(ctx context.Context, addr string) (net.Conn, error) {
		n++
		p := *e
		piped(&p, []string{list, stream}[min(n, 2)-1])
		return p.dial(ctx, addr)
	}
	f, err := e.Probe(t.Context())
	if err != nil || f.Model != "m/***" || f.Server != "***" {
		t.Errorf("%+v: %v", f, err)
	}
	r, err := session(t, e).Ask(t.Context())
	if err != nil || r.Finish != "***" {
		t.Errorf("%+v: %v", r, err)
	}
	e = endpoint(t, answering(t, status("400 Bad", "no query-secret")), Options{})
	e.secrets = newSecrets("", &url.URL{RawQuery: "token=query-secret"}, "")
	if _, err := session(t, e).Ask(t.Context()); err == nil ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

// A server that was given a key may repeat it in codings that toll does not know.
func TestForeignCodings(t *testing.T) {
	const key = "sk-Test5a8bQ9xT2w"
	back := []byte(key)
	slices.Reverse(back)
	texts := []string{everyByte(key, "%02x "), everyByte(key, "%02x."), everyByte(key, "%03o "),
		everyByte(key, `\\%03o`), base64.StdEncoding.EncodeToString(back),
		everyByte(string(back), "%02x"), everyByte(key, "%c\u200b"), everyByte(key, "%c "),
		everyByte(key, "%d "), everyByte(key, "%08b ")}
	for _, text := range texts {
		e := endpoint(t, answering(t, status("401 Unauthorized", "Invalid key: "+text+" was given")),
			Options{Model: "m", Key: key})
		_, err := session(t, e).Ask(t.Context())
		var se *StatusError
		if !errors.As(err, &se) {
			t.Fatalf("%q: %v", text, err)
		}
		rest := lengths.ReplaceAllString(se.Text, "")
		if !strings.HasPrefix(se.Text, "Unauthorized: Invalid") ||
			strings.Trim(strings.NewReplacer("Unauthorized:", "", "Invalid", "", "key:", "",
				"was given", "", "given", "", "***", "").Replace(rest), " ") != "" {
			t.Errorf("%q: %q", text, se.Text)
		}
	}
}

var lengths = regexp.MustCompile(`\[\d+ characters\]`)

// A redirection to the same path by TLS is shown, one elsewhere is cut.
func TestRedirectionWithKey(t *testing.T) {
	const key = "sk-Test5a8bQ9xT2w"
	for to, want := range map[string]string{
		"https://SERVER/v1/chat/completions":  "https://SERVER/v1/chat/completions",
		"https://SERVER/v1/" + key + "/login": "[32 characters]",
	} {
		e := endpoint(t, "http://server:8000", Options{Model: "m", Key: key})
		to = strings.ReplaceAll(to, "SERVER", "server:8000")
		want = strings.ReplaceAll(want, "SERVER", "server:8000")
		piped(e, "HTTP/1.1 301 Moved\r\nLocation: "+to+"\r\nContent-Length: 0\r\n\r\n")
		_, err := session(t, e).Ask(t.Context())
		var se *StatusError
		if !errors.As(err, &se) || se.Text != "and redirects to "+want+", which is not followed" {
			t.Errorf("%s: %v", to, err)
		}
	}
}
