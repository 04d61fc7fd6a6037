package workload

import (
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestWords(t *testing.T) {
	for want, l := range map[string]sample.Load{
		"crr, 1 byte each way": {
			Kind: CRR, Streams: 1, Options: sample.Messages{Request: 1, Reply: 1}},
		"crr, 1 byte out, 20 bytes back": {
			Kind: CRR, Streams: 1, Options: sample.Messages{Request: 1, Reply: 20}},
		"crr, 8 connections at a time, 1 byte each way": {
			Kind: CRR, Streams: 8, Options: sample.Messages{Request: 1, Reply: 1}},

		"udp, 64 bytes, at the highest rate that loses at most 0.1 %": {
			Kind: UDP, Streams: 1, Options: sample.UDPOptions{Size: 64, Batch: 1}},
		"udp, 1400 bytes, at 500 Mbit/s": {
			Kind: UDP, Streams: 1, Options: sample.UDPOptions{Size: 1400, Rate: 5e8}},
		"udp, 1400 bytes, 3 flows, at 1.5 Gbit/s, GSO": {
			Kind: UDP, Streams: 3, Options: sample.UDPOptions{Size: 1400, GSO: true, Rate: 1.5e9}},
		"udp, 9000 bytes, at the highest rate that loses at most 0.1 %, 16 a call": {
			Kind: UDP, Options: sample.UDPOptions{Size: 9000, Batch: 16}},
		"udp, 100 bytes, at 20 kbit/s": {
			Kind: UDP, Options: sample.UDPOptions{Size: 100, Rate: 2e4}},
		"udp-rr, 1 byte each way": {
			Kind: UDPRR, Options: sample.Messages{Request: 1, Reply: 1}},

		"responses of at most 1 token": {
			Kind: Chat, Streams: 1, Options: sample.ChatOptions{Tokens: 1}},
		"responses of at most 64 tokens, 2 sessions": {
			Kind: Chat, Streams: 2, Options: sample.ChatOptions{Tokens: 64}},
		"pages of 1 query": {
			Kind: SQL, Options: sample.SQLOptions{Queries: 1}},
		"pages of 20 queries, 256 sessions": {
			Kind: SQL, Streams: 256, Options: sample.SQLOptions{Queries: 20}},

		"bulk, 1 stream, TCP_NODELAY on": {Kind: Bulk, Streams: 1, Nodelay: "on"},
		"exec":                           {Kind: Exec},
		"of a later toll":                {Kind: "of a later toll", Streams: 2},
	} {
		if got := Of(l).Words(l); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
