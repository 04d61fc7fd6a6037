package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// The wire format of stream is HTTP/1.1 (RFC 9112) with a chunked body of server-sent events
// (WHATWG HTML, 9.2), each with the JSON of an OpenAI-compatible chunk. Each event has the instants
// at which it was due and sent, in CLOCK_MONOTONIC ns of fixed width, so that the client can
// distinguish the users' delay from the load's own lateness.

const (
	streamPath = "/v1/chat/completions"
	chunkHead  = `{"id":"chatcmpl-b2f0a7c1d49e4c5a8e6f3d21","object":"chat.completion.chunk","created":1700000000,"model":"toll",`
	dueKey     = `"due_ns":"`
	sentKey    = `","sent_ns":"`
	stampWidth = 19 // number of digits of the largest int64
	doneData   = "[DONE]"
	finishMark = `"finish_reason":"stop"`
)

// tokenWords are repeated in a response. They differ in length, like a model's tokens.
var tokenWords = []string{" the", " of", " packet", " a", " and", " network", " is", ",", " bridge",
	" to", " in", " container", ".", " it", " on", " namespace"}

type sseFrame struct {
	b         []byte
	due, sent int
}

func tokenFrames() []sseFrame {
	var out []sseFrame
	zeros := string(bytes.Repeat([]byte{'0'}, stampWidth))
	for _, w := range tokenWords {
		b := httpChunk(`data: ` + chunkHead + `"choices":[{"index":0,"delta":{"content":` +
			strconv.Quote(w) +
			`},"logprobs":null,"finish_reason":null}],"toll":{` + dueKey + zeros + sentKey + zeros +
			`"}}` + "\n\n")
		due := bytes.Index(b, []byte(dueKey)) + len(dueKey)
		out = append(out, sseFrame{b, due, due + stampWidth + len(sentKey)})
	}
	return out
}

var (
	responseHead = []byte(
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n" +
			"Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n")
	finishFrame = httpChunk(`data: ` + chunkHead +
		`"choices":[{"index":0,"delta":{},"logprobs":null,` + finishMark + `}]}` + "\n\n")
	doneFrame = append(httpChunk("data: "+doneData+"\n\n"), "0\r\n\r\n"...)
)

func httpChunk(s string) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(s), s) }

// stamp writes ns to the front of b as stampWidth digits.
func stamp(b []byte, ns int64) {
	for i := stampWidth - 1; i >= 0; i-- {
		b[i] = byte('0' + ns%10)
		ns /= 10
	}
}

// readStamp returns the instant that stamp wrote. ok is false for anything else.
func readStamp(b []byte) (ns int64, ok bool) {
	if len(b) < stampWidth {
		return 0, false
	}
	for _, c := range b[:stampWidth] {
		if c < '0' || c > '9' {
			return 0, false
		}
		ns = 10*ns + int64(c-'0')
	}
	return ns, ns >= 0
}

// tokenRequest returns a client's request.
func tokenRequest(tokens int) []byte {
	body := `{"model":"toll","messages":[{"role":"system","content":"You are a helpful assistant."},` +
		`{"role":"user","content":"How do packets reach a container?"}],"max_tokens":` +
		strconv.Itoa(tokens) +
		`,"temperature":0.7,"stream":true}`
	return fmt.Appendf(
		nil, "POST %s HTTP/1.1\r\nHost: toll\r\nUser-Agent: toll\r\nAccept: text/event-stream\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", streamPath, len(body),
		body)
}

// maxLine is the most bytes of a line from either side.
const maxLine = 1024

var errLongLine = errors.New("a line is too long")

// httpLine collects a line that may arrive in pieces.
type httpLine struct {
	b [maxLine]byte
	n int
}

// take reads b up to a line's end. whole means that the end was reached; l then has the line,
// without its end, until the next call.
func (l *httpLine) take(b []byte) (used int, whole bool, err error) {
	i := bytes.IndexByte(b, '\n')
	used = i + 1
	part := b[:max(i, 0)]
	if i < 0 {
		used, part = len(b), b
	}
	if l.n+len(part) > maxLine {
		return used, false, errLongLine
	}
	l.n += copy(l.b[l.n:], part)
	return used, i >= 0, nil
}

// text returns the line and resets l. ok is false if crlf requires the line to end in CRLF and it
// did not.
func (l *httpLine) text(crlf bool) (s []byte, ok bool) {
	s = l.b[:l.n]
	l.n = 0
	if !crlf {
		return s, true
	}
	return bytes.CutSuffix(s, []byte{'\r'})
}

// headerValue returns the value of a header line if it has the given name, in upper or lower case.
func headerValue(s []byte, name string) (value []byte, ok bool) {
	if len(s) <= len(name) || s[len(name)] != ':' || !bytes.EqualFold(s[:len(name)], []byte(name)) {
		return nil, false
	}
	return bytes.TrimSpace(s[len(name)+1:]), true
}

// StreamMessages returns the mean sizes, in bytes, of a stream's request and of each part of a
// response that the server sends at once.
func StreamMessages(tokens int) (request, reply int) {
	frames := tokenFrames()
	bytes, messages := len(responseHead)+len(finishFrame)+len(doneFrame), 3
	for i := range min(tokens, len(frames)) { // the frames repeat
		bytes += len(frames[i].b)
		messages++
	}
	return len(tokenRequest(tokens)), bytes / messages
}
