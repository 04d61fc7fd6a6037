#!/bin/bash
# One would guess that a client for streams of tokens ignores comments, which servers and gateways
# send to keep a connection open, however many there are.
#
# go-openai counts the lines of a comment and of its end as empty messages, and gives up after 300
# in a row: 150 comments before the first token are fine, 151 are "too many empty messages". With a
# comment a second, a model that thinks for two and a half minutes has no answer.
#
# github.com/sashabaranov/go-openai 1.43.0 (Go), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

go_get github.com/sashabaranov/go-openai@v1.43.0
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/sashabaranov/go-openai"
)

func main() {
	for _, comments := range []int{150, 151} {
		fmt.Print(comments, " comments: ", answer(comments), "; ")
	}
}

func answer(comments int) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, strings.Repeat(": keep-alive\n\n", comments)+
			`data: {"choices":[{"delta":{"content":"Yes"}}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	config := openai.DefaultConfig("x")
	config.BaseURL = server.URL
	stream, err := openai.NewClientWithConfig(config).CreateChatCompletionStream(
		context.Background(), openai.ChatCompletionRequest{Model: "m"})
	if err != nil {
		return err.Error()
	}
	defer stream.Close()
	for text := ""; ; {
		part, err := stream.Recv()
		if err == io.EOF {
			return text
		} else if err != nil {
			return err.Error()
		}
		text += part.Choices[0].Delta.Content
	}
}
END
go build -o ask .
expect "answers" \
	"150 comments: Yes; 151 comments: stream has sent too many empty messages; " "$(./ask)"
