//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Shortcuts from this machine's loopback addresses into containers, taken when a
// client connects. shortcut.go says what they are for and who fills the maps.
//
// Every program that rewrites returns 1, "go on", in any case; what it is not sure of stays
// as it is. Only toll_answer drops packets, of clients that wait for a container.
// (GPL beside MIT because the kernel gives its own structures to no other program.)

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define TCP_SYN_SENT 2
#define TCP_LISTEN 10
#define RST 0x04 // in a TCP header's byte of flags
#define GO_ON 1
#define DROP 0
#define MAX_PROGRAMS 8 // of one kind at one cgroup, of which ours may be several

// Of the kernel's structures only what is looked at; the loader finds where it is.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct bpf_prog_aux {
	char name[16];
};
struct bpf_prog {
	struct bpf_prog_aux *aux;
};
struct bpf_prog_array_item {
	struct bpf_prog *prog;
};
struct bpf_prog_array {
	struct bpf_prog_array_item items[0];
};
struct cgroup_bpf {
	struct bpf_prog_array *effective[1];
};
struct cgroup {
	struct cgroup_bpf bpf;
};
struct sock_cgroup_data {
	struct cgroup *cgroup;
};
struct sock_common {
	unsigned char skc_ipv6only : 1;
};
struct sock {
	struct sock_common __sk_common;
	struct sock_cgroup_data sk_cgrp_data;
	__u32 sk_ack_backlog, sk_max_ack_backlog;
	__u8 sk_kern_sock : 1;
};
struct inet_sock {
	struct sock sk;
};
struct inet_connection_sock {
	struct inet_sock icsk_inet;
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
};
#pragma clang attribute pop

enum cgroup_bpf_attach_type {
	CGROUP_INET_INGRESS,
	CGROUP_INET_EGRESS,
	CGROUP_INET4_CONNECT,
	CGROUP_INET6_CONNECT,
};

// An address is IPv6; one of IPv4 is mapped (::ffff:a.b.c.d). A port is as on the wire.
struct endpoint {
	__u32 addr[4];
	__be16 port;
	__u16 zero;
};

// What turns all of it off: one word, and the time at which nobody renewed it.
struct control {
	__u64 netns; // the cookie of the namespace whose clients are meant
	__u64 until; // CLOCK_MONOTONIC, in ns
	__u32 on;
	__u32 zero;
};

struct shortcut {
	struct endpoint target;
	__u32 netns; // the number of the target's namespace, plus one; 0: its queue is not looked at
	__u64 taken;
};

// Why a connection to a published port was left alone.
enum reason { BOUND, DEVICE, NO_LISTENER, OTHER_LISTENER, FILTERED, KERNEL, V6_ONLY, NO_MEMORY, OFF, QUEUE, GONE, REASONS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct endpoint);
	__type(value, struct shortcut);
} shortcuts SEC(".maps");

// What a listening socket leads to. It ends with the socket: whoever listens next has none.
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct endpoint);
} listeners SEC(".maps");

struct took {
	struct endpoint dialled, target;
};

// What a client dialled, for getpeername and getsockname.
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct took);
} clients SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REASONS);
	__type(key, __u32);
	__type(value, __u64);
} left SEC(".maps");

// Ports that the user chose; 0: all. The programs do not read it: it is kept with what they do.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} chosen SEC(".maps");

static __always_inline int leave(__u32 why)
{
	__u64 *n = bpf_map_lookup_elem(&left, &why);
	if (n)
		__sync_fetch_and_add(n, 1);
	return GO_ON;
}

static __always_inline bool same(const struct endpoint *a, const struct endpoint *b)
{
	return a->addr[0] == b->addr[0] && a->addr[1] == b->addr[1] && a->addr[2] == b->addr[2] && a->addr[3] == b->addr[3] &&
	       a->port == b->port;
}

static __always_inline bool mapped(const struct endpoint *e)
{
	return e->addr[0] == 0 && e->addr[1] == 0 && e->addr[2] == bpf_htonl(0xffff);
}

static __always_inline bool is_ours(struct bpf_prog *p)
{
	char name[16] = {};
	struct bpf_prog_aux *aux = BPF_CORE_READ(p, aux);

	if (!aux || bpf_core_read(name, sizeof(name), &aux->name))
		return false;
	return name[0] == 't' && name[1] == 'o' && name[2] == 'l' && name[3] == 'l' && name[4] == '_';
}

// nothing_of says whether a cgroup has no programs of a kind, its parents' included, except ours.
static __always_inline bool nothing_of(struct cgroup *c, int kind)
{
	struct bpf_prog_array *all;
	struct bpf_prog *p;

	if (bpf_core_read(&all, sizeof(all), &c->bpf.effective[kind]) || !all)
		return false;
#pragma unroll
	for (int i = 0; i < MAX_PROGRAMS; i++) {
		if (bpf_core_read(&p, sizeof(p), &all->items[i].prog))
			return false;
		if (!p)
			return true;
		if (!is_ours(p))
			return false;
	}
	return false;
}

// unfiltered says whether no program of another's decides about the socket's addresses
// or packets: it would see others than it was written for.
static __always_inline bool unfiltered(struct tcp_sock *t, bool six)
{
	struct cgroup *c = 0;

	if (bpf_core_read(&c, sizeof(c), &t->inet_conn.icsk_inet.sk.sk_cgrp_data.cgroup) || !c)
		return false;
	if (!nothing_of(c, bpf_core_enum_value(enum cgroup_bpf_attach_type, CGROUP_INET_INGRESS)) ||
	    !nothing_of(c, bpf_core_enum_value(enum cgroup_bpf_attach_type, CGROUP_INET_EGRESS)))
		return false;
	if (six)
		return nothing_of(c, bpf_core_enum_value(enum cgroup_bpf_attach_type, CGROUP_INET6_CONNECT));
	return nothing_of(c, bpf_core_enum_value(enum cgroup_bpf_attach_type, CGROUP_INET4_CONNECT));
}

// lookup returns the socket that takes connections to e in a namespace, or 0.
static __always_inline struct bpf_sock *lookup(void *ctx, const struct endpoint *e, __u64 netns)
{
	struct bpf_sock_tuple t = {};

	if (mapped(e)) {
		t.ipv4.daddr = e->addr[3];
		t.ipv4.dport = e->port;
		return bpf_sk_lookup_tcp(ctx, &t, sizeof(t.ipv4), netns, 0);
	}
	__builtin_memcpy(t.ipv6.daddr, e->addr, sizeof(t.ipv6.daddr));
	t.ipv6.dport = e->port;
	return bpf_sk_lookup_tcp(ctx, &t, sizeof(t.ipv6), netns, 0);
}

// listens finds the target of the socket that a client of e would reach now. It returns -1,
// or the reason why there is none.
static __always_inline int listens(void *ctx, const struct endpoint *e, struct endpoint *to)
{
	struct bpf_sock *l = lookup(ctx, e, BPF_F_CURRENT_NETNS);
	struct endpoint *tag = 0;
	int why = NO_LISTENER;

	if (!l)
		return why;
	if (l->state == TCP_LISTEN) {
		why = OTHER_LISTENER;
		tag = bpf_sk_storage_get(&listeners, l, 0, 0);
		if (tag) {
			*to = *tag;
			why = -1;
		}
	}
	bpf_sk_release(l);
	return why;
}

// crowded reports whether more than half of the server's accept queue is taken. A full queue
// drops clients' SYNs, which are sent again after a second. Half of it is for clients that
// connect at the same time, none of which sees the others.
static __always_inline bool crowded(void *ctx, const struct shortcut *s)
{
	struct bpf_sock *l;
	struct tcp_sock *t;
	bool out = false;

	if (!s->netns)
		return false;
	l = lookup(ctx, &s->target, s->netns - 1);
	if (!l)
		return false;
	t = bpf_skc_to_tcp_sock(l);
	if (t && l->state == TCP_LISTEN)
		out = 2ull * BPF_CORE_READ(t, inet_conn.icsk_inet.sk.sk_ack_backlog) >
		      BPF_CORE_READ(t, inet_conn.icsk_inet.sk.sk_max_ack_backlog);
	bpf_sk_release(l);
	return out;
}

// decide says whether a client takes the shortcut, and where to: -1, or why not.
static __always_inline int decide(struct bpf_sock_addr *ctx, struct bpf_sock *sk, const struct endpoint *e, struct shortcut *s,
				  struct endpoint *to, bool six)
{
	struct tcp_sock *t;
	int why;

	if (sk->bound_dev_if || sk->mark)
		return DEVICE;
	if (sk->src_port || sk->src_ip4)
		return BOUND;
	if (six && (sk->src_ip6[0] || sk->src_ip6[1] || sk->src_ip6[2] || sk->src_ip6[3]))
		return BOUND;
	t = bpf_skc_to_tcp_sock(sk);
	if (!t || BPF_CORE_READ_BITFIELD_PROBED(&t->inet_conn.icsk_inet.sk, sk_kern_sock))
		return KERNEL;
	why = listens(ctx, e, to);
	if (why >= 0)
		return why;
	if (!same(to, &s->target))
		return OTHER_LISTENER;
	if (six && mapped(to) && BPF_CORE_READ_BITFIELD_PROBED(&t->inet_conn.icsk_inet.sk.__sk_common, skc_ipv6only))
		return V6_ONLY;
	if (!unfiltered(t, six))
		return FILTERED;
	if (crowded(ctx, s))
		return QUEUE;
	return -1;
}

// take decides about a client's connection to e; 1: it is to go to s's target.
static __always_inline bool take(struct bpf_sock_addr *ctx, const struct endpoint *e, struct endpoint *to, bool six)
{
	struct bpf_sock *sk = ctx->sk;
	struct control *c;
	struct shortcut *s;
	struct took *k;
	__u32 zero = 0;
	int why;

	if (!sk || ctx->protocol != IPPROTO_TCP)
		return false;
	c = bpf_map_lookup_elem(&control, &zero);
	if (!c || bpf_get_netns_cookie(ctx) != c->netns)
		return false;
	// A socket that connects again is no longer what it was.
	if (bpf_sk_storage_get(&clients, sk, 0, 0))
		bpf_sk_storage_delete(&clients, sk);
	s = bpf_map_lookup_elem(&shortcuts, e);
	if (!s)
		return false;
	if (!c->on || bpf_ktime_get_ns() >= c->until) {
		leave(OFF);
		return false;
	}
	why = decide(ctx, sk, e, s, to, six);
	if (why >= 0) {
		leave(why);
		return false;
	}
	k = bpf_sk_storage_get(&clients, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!k) {
		leave(NO_MEMORY);
		return false;
	}
	k->dialled = *e;
	k->target = *to;
	__sync_fetch_and_add(&s->taken, 1);
	return true;
}

static __always_inline struct endpoint from4(__u32 addr, __u32 port)
{
	struct endpoint e = { .addr = { 0, 0, bpf_htonl(0xffff), addr }, .port = (__be16)port };
	return e;
}

SEC("cgroup/connect4")
int toll_connect4(struct bpf_sock_addr *ctx)
{
	struct endpoint e = from4(ctx->user_ip4, ctx->user_port), to;

	// A socket of IPv4 reaches addresses of IPv4 only.
	if (!take(ctx, &e, &to, false) || !mapped(&to))
		return GO_ON;
	ctx->user_ip4 = to.addr[3];
	ctx->user_port = to.port;
	return GO_ON;
}

SEC("cgroup/connect6")
int toll_connect6(struct bpf_sock_addr *ctx)
{
	struct endpoint e = {}, to;

	e.addr[0] = ctx->user_ip6[0];
	e.addr[1] = ctx->user_ip6[1];
	e.addr[2] = ctx->user_ip6[2];
	e.addr[3] = ctx->user_ip6[3];
	e.port = (__be16)ctx->user_port;
	if (!take(ctx, &e, &to, true))
		return GO_ON;
	ctx->user_ip6[0] = to.addr[0];
	ctx->user_ip6[1] = to.addr[1];
	ctx->user_ip6[2] = to.addr[2];
	ctx->user_ip6[3] = to.addr[3];
	ctx->user_port = to.port;
	return GO_ON;
}

// dialled is what a client that took a shortcut dialled.
static __always_inline struct took *dialled(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	if (!sk || ctx->protocol != IPPROTO_TCP)
		return 0;
	return bpf_sk_storage_get(&clients, sk, 0, 0);
}

SEC("cgroup/getpeername4")
int toll_getpeer4(struct bpf_sock_addr *ctx)
{
	struct took *k = dialled(ctx);

	if (k && ctx->user_ip4 == k->target.addr[3] && (__be16)ctx->user_port == k->target.port) {
		ctx->user_ip4 = k->dialled.addr[3];
		ctx->user_port = k->dialled.port;
	}
	return GO_ON;
}

SEC("cgroup/getpeername6")
int toll_getpeer6(struct bpf_sock_addr *ctx)
{
	struct took *k = dialled(ctx);
	struct endpoint e = {};

	e.addr[0] = ctx->user_ip6[0];
	e.addr[1] = ctx->user_ip6[1];
	e.addr[2] = ctx->user_ip6[2];
	e.addr[3] = ctx->user_ip6[3];
	e.port = (__be16)ctx->user_port;
	if (k && same(&e, &k->target)) {
		ctx->user_ip6[0] = k->dialled.addr[0];
		ctx->user_ip6[1] = k->dialled.addr[1];
		ctx->user_ip6[2] = k->dialled.addr[2];
		ctx->user_ip6[3] = k->dialled.addr[3];
		ctx->user_port = k->dialled.port;
	}
	return GO_ON;
}

// What is dialled is a loopback address, from which a client's own is the same one.
SEC("cgroup/getsockname4")
int toll_getsock4(struct bpf_sock_addr *ctx)
{
	struct took *k = dialled(ctx);

	if (k && ctx->sk->dst_ip4 == k->target.addr[3] && ctx->sk->dst_port == k->target.port)
		ctx->user_ip4 = k->dialled.addr[3];
	return GO_ON;
}

SEC("cgroup/getsockname6")
int toll_getsock6(struct bpf_sock_addr *ctx)
{
	struct took *k = dialled(ctx);
	struct endpoint e = {};

	if (!k)
		return GO_ON;
	e.addr[0] = ctx->sk->dst_ip6[0];
	e.addr[1] = ctx->sk->dst_ip6[1];
	e.addr[2] = ctx->sk->dst_ip6[2];
	e.addr[3] = ctx->sk->dst_ip6[3];
	e.port = ctx->sk->dst_port;
	if (same(&e, &k->target)) {
		ctx->user_ip6[0] = k->dialled.addr[0];
		ctx->user_ip6[1] = k->dialled.addr[1];
		ctx->user_ip6[2] = k->dialled.addr[2];
		ctx->user_ip6[3] = k->dialled.addr[3];
	}
	return GO_ON;
}

// resets reports whether a TCP packet, from its IP header on, ends the connection. IPv6's
// extension headers are not walked: a packet that has one does not.
static __always_inline bool resets(struct __sk_buff *skb)
{
	__u8 first = 0, flags = 0;
	__u32 tcp = 40;

	if (bpf_skb_load_bytes(skb, 0, &first, 1))
		return false;
	if (first >> 4 == 4) {
		tcp = (first & 0xf) * 4;
	} else if (bpf_skb_load_bytes(skb, 6, &first, 1) || first != IPPROTO_TCP) {
		return false;
	}
	return !bpf_skb_load_bytes(skb, tcp + 13, &flags, 1) && flags & RST;
}

// toll_answer drops the answer to a redirected client's SYN if docker-proxy's socket no
// longer leads to the container: its address may be another's by now. As long as the socket
// is there, so is the container.
SEC("cgroup_skb/ingress")
int toll_answer(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct endpoint to;
	struct took *k;

	if (!sk)
		return GO_ON;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->state != TCP_SYN_SENT)
		return GO_ON;
	k = bpf_sk_storage_get(&clients, sk, 0, 0);
	if (!k)
		return GO_ON;
	if (listens(skb, &k->dialled, &to) < 0 && same(&to, &k->target))
		return GO_ON;
	if (resets(skb))
		return GO_ON; // it reaches nobody, and the client need not wait
	leave(GONE);
	return DROP;
}
