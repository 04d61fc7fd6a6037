package openai

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func answered(body, more string) string {
	return fmt.Sprintf(
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		len(body), more, body)
}

func TestAskWhole(t *testing.T) {
	const body = `{"choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"length"}],"usage":{"completion_tokens":7}}`
	const late = 20 * time.Millisecond
	var asked []string
	url := listen(t, talk(func(c net.Conn, _ int, r *http.Request) bool {
		b, _ := io.ReadAll(r.Body)
		asked = append(asked, string(b)+r.Header.Get("Accept"))
		whole := answered(body, "")
		io.WriteString(c, whole[:len(whole)-9])
		time.Sleep(late)
		io.WriteString(c, whole[len(whole)-9:])
		return true
	}).serve)
	s := session(t, endpoint(t, url, Options{Model: "m"}))
	for i := range 2 {
		r, err := s.AskWhole(context.Background())
		if err != nil || r.Tokens != 7 || r.Finish != "length" || r.End < late ||
			len(r.Arrivals) != 0 || (r.Connect > 0) != (i == 0) || r.RTT <= 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	for _, a := range asked {
		if a != `{"model":"m","messages":[{"role":"user","content":"Count from one to one thousand in words, `+
			`without a pause."}],"max_tokens":128,"temperature":0,"seed":1,"stream":false}application/json` {
			t.Errorf("it asked %s", a)
		}
	}
	e := endpoint(t, url+"/v1/completions", Options{Model: "m"})
	if f, err := e.ProbeWhole(context.Background()); err != nil || f.Model != "m" ||
		f.Type != "" || "http://"+f.Remote.String() != url {
		t.Errorf("the probe: %+v, %v", f, err)
	}
}

func TestAskWholeRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ raw, words string }{
		"stream": {good(), asking + "the server streams its response, although it was asked not to"},
		"no JSON": {answered("hello hunter22", ""),
			asking + "the server's answer is not a completion: hello ***"},
		"fault": {answered(`{"error":{"message":"no memory for hunter22"}}`, ""),
			asking + "the server could not answer: no memory for ***"},
		"empty": {answered(`{"choices":[{"message":{"content":""}}]}`, ""),
			asking + "the response has no token"},
		"none": {answered(`{"choices":[]}`, ""), asking + "the response has no token"},
		"null": {answered(`null`, ""), asking + "the server's answer is not a completion: null"},
		"status": {"HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n",
			asking + "the server answered 429 Too Many"},
		"redirect": {"HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n",
			asking + "the server answered 302 and redirects to [9 characters], which is not followed"},
		"gzip": {answered("x", "Content-Encoding: br\r\n"), asking + "the server or a gateway in front of it compresses the response with br, which was not offered"},
		"cut": {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
			asking + "the server closed the connection before the end of its response, after 1 bytes"},
		"huge": {"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n",
			asking + "the server announces a response of 1000000000000 bytes; the limit is 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := session(t, endpoint(t, answering(t, tt.raw),
				Options{Model: "m", Key: "hunter22"})).AskWhole(context.Background())
			if err == nil || testgolden.Stable(err.Error()) != tt.words {
				t.Errorf("%v, want %q", err, tt.words)
			}
		})
	}
	mute := listen(t, talk(func(c net.Conn, _ int, _ *http.Request) bool {
		_, _ = c.Read(make([]byte, 1))
		return false
	}).serve)
	_, err := session(t, endpoint(t, mute, Options{
		Model: "m", Timeout: 200 * time.Millisecond})).AskWhole(context.Background())
	if err == nil || testgolden.Stable(err.Error()) != asking+"no response within 2s" {
		t.Error(err)
	}
}
