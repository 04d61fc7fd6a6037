//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Programs that write down where a connection's packets, sockets and threads are. trace.go
// says what for. None of them changes anything but the maps below.
// (GPL beside MIT because the kernel gives its own structures to no other program.)

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <stdbool.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define NET_RX_SOFTIRQ 3
#define FRAGMENT 0x3fff // the bits of an IPv4 header's offset that make it a fragment
#define MAX_CPUS 1024
#define HANDED 256 // a power of two
#define PIDS (1 << 22)

// The order is Kind's in trace.go.
enum kind { SEND = 1, QUEUE, XMIT, RX, RECEIVE, SOFTIRQ, ROUTE, TCP, READY, WAKING, IPI, SWITCH, COPY, READ, SENT, HOOK_IN, HOOK_OUT, NAT_IN, NAT_OUT };

// Of the kernel's structures only what is looked at; the loader finds where it is.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	unsigned int inum;
};
struct net {
	struct ns_common ns;
};
typedef struct {
	struct net *net;
} possible_net_t;
struct net_device {
	int ifindex;
	possible_net_t nd_net;
};
struct sock_common {
	unsigned short skc_family;
	__be16 skc_dport;
	__u16 skc_num;
	possible_net_t skc_net;
};
struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
};
struct tcp_sock {
	__u32 copied_seq, rcv_nxt, write_seq;
};
struct tcp_skb_cb {
	__u32 seq, end_seq;
};
struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	char cb[48];
	unsigned int len;
	int skb_iif;
	__u16 network_header;
	unsigned char *head, *data;
};
struct task_struct {
	int pid, tgid;
};
struct nf_hook_state {
	__u8 hook;
	struct net *net;
};
struct bpf_nf_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
};
#pragma clang attribute pop

// The layout is Event's in trace.go.
struct event {
	__s64 ts;
	__u64 ptr;
	__u32 seq, dev, netns;
	__s32 len;
	__u32 tid, pid;
	__u16 source, dest;
	__u8 kind, zero;
	__u16 cpu;
};

struct packet {
	__u32 seq;
	__s32 len;
	__u16 source, dest;
	__u32 size; // with all headers
};

// What a CPU did last, and its part of the log.
struct slot {
	__u64 last; // the packet that it followed last
	volatile __u64 number; // of a pointer
	struct packet packet;
	__u32 n, room, first; // n may be more than there is room for
	__u8 kind; // of the last event
	__u8 sent; // the last packet was given to a driver
} __attribute__((aligned(64)));

// A packet between netif_rx and the softirq, perhaps another CPU's.
struct handed {
	__u64 ptr;
	struct packet packet;
	__u32 cpu, zero;
};

struct state {
	__s64 from, until; // CLOCK_MONOTONIC, in ns
	struct slot slots[MAX_CPUS];
	struct handed handed[HANDED];
	__u64 ports[(1 << 16) / 64];
	__u64 pids[PIDS / 64];
} state;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); // the loader knows better
	__type(key, __u32);
	__type(value, struct event);
} events SEC(".maps");

static __always_inline bool is_our_port(__u16 port)
{
	return state.ports[port >> 6] >> (port & 63) & 1;
}

static __always_inline bool is_ours(__u32 pid)
{
	return pid < PIDS && state.pids[(pid & (PIDS - 1)) >> 6] >> (pid & 63) & 1;
}

// recording returns the CPU's slot, or 0 if nothing is recorded now.
static __always_inline struct slot *recording(__s64 *now)
{
	__u32 cpu;

	if (!state.until)
		return 0;
	*now = bpf_ktime_get_ns();
	if (*now < state.from || *now >= state.until)
		return 0;
	cpu = bpf_get_smp_processor_id();
	return cpu < MAX_CPUS ? &state.slots[cpu] : 0;
}

static __always_inline struct event *add(struct slot *s, __u8 kind, __s64 now)
{
	__u32 n = __sync_fetch_and_add(&s->n, 1); // interrupts nest
	__u64 thread;
	struct event *e;

	s->kind = kind;
	if (n >= s->room)
		return 0;
	n += s->first;
	e = bpf_map_lookup_elem(&events, &n);
	if (!e)
		return 0;
	thread = bpf_get_current_pid_tgid();
	*e = (struct event){ .ts = now, .kind = kind, .tid = thread, .pid = thread >> 32, .cpu = bpf_get_smp_processor_id() };
	return e;
}

// layer4 reads the header at t, with len bytes of it and its payload.
static __always_inline bool layer4(const __u8 *t, __u8 protocol, __s32 len, struct packet *p)
{
	p->source = bpf_ntohs(*(__be16 *)t);
	p->dest = bpf_ntohs(*(__be16 *)(t + 2));
	if (!is_our_port(p->source) && !is_our_port(p->dest))
		return false;
	if (protocol == IPPROTO_TCP) {
		p->seq = bpf_ntohl(*(__be32 *)(t + 4));
		p->len = len - (t[12] >> 4) * 4;
	} else {
		p->seq = 0;
		p->len = len - 8;
	}
	return p->len > 0;
}

// parse reads a packet's headers, and reports whether it is ours and has a payload.
static __always_inline bool parse(const struct sk_buff *skb, const unsigned char *ip, struct packet *p)
{
	__u8 b[60] __attribute__((aligned(8))), protocol;
	__s32 len, header;

	if (bpf_probe_read_kernel(b, sizeof(b), ip))
		return false;
	p->size = skb->len;
	len = p->size - (ip - skb->data); // that of large packets is not in the header
	switch (b[0] >> 4) {
	case 4:
		protocol = b[9];
		if ((protocol != IPPROTO_TCP && protocol != IPPROTO_UDP) || *(__be16 *)(b + 6) & bpf_htons(FRAGMENT))
			return false;
		if (*(__be16 *)(b + 2))
			len = bpf_ntohs(*(__be16 *)(b + 2));
		header = (b[0] & 0xf) * 4;
		if (header != 20 && bpf_probe_read_kernel(b + 20, 20, ip + header))
			return false;
		return layer4(b + 20, protocol, len - header, p);
	case 6:
		protocol = b[6];
		if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
			return false;
		len -= 40;
		if (*(__be16 *)(b + 4))
			len = bpf_ntohs(*(__be16 *)(b + 4));
		return layer4(b + 40, protocol, len, p);
	}
	return false;
}

static __always_inline struct handed *find_handed(struct slot *s, __u64 ptr)
{
	s->number = ptr; // the verifier lets nobody calculate with pointers
	return &state.handed[s->number >> 8 & (HANDED - 1)];
}

// packet records a packet's step. The packet is ours by its ports, or because it is the one that
// this CPU followed last: then nothing is read, and the ports are those before NAT.
static __always_inline int packet(__u8 kind, const struct sk_buff *skb, const unsigned char *ip, __u32 dev, struct net *net)
{
	__u64 ptr = (__u64)skb;
	struct handed *h;
	struct packet p;
	struct event *e;
	struct slot *s;
	bool known;
	__s64 now;

	s = recording(&now);
	if (!s)
		return 0;
	known = s->last == ptr;
	h = kind == RX || kind == RECEIVE ? find_handed(s, ptr) : 0;
	if (kind == RECEIVE && h->ptr == ptr) {
		s->packet = h->packet; // that of another CPU, or an earlier one at this address
		if (h->cpu != bpf_get_smp_processor_id())
			state.slots[h->cpu & (MAX_CPUS - 1)].last = 0;
		known = true;
		s->sent = h->ptr = 0;
	}
	// What a driver had or a socket sends may be a new packet at an old address, unless it
	// grew: a tunnel's outer headers have other ports.
	if (!known || (((s->sent && kind != RX) || (kind == QUEUE && skb->sk)) && skb->len <= s->packet.size)) {
		if (!parse(skb, ip, &p))
			return 0;
		s->packet = p;
	}
	s->last = ptr;
	s->sent = kind == XMIT;
	if (kind == RX) {
		h->packet = s->packet;
		h->cpu = bpf_get_smp_processor_id();
		h->ptr = ptr;
	}
	e = add(s, kind, now);
	if (!e)
		return 0;
	e->ptr = ptr;
	e->dev = dev;
	e->netns = net->ns.inum;
	e->seq = s->packet.seq;
	e->len = s->packet.len;
	e->source = s->packet.source;
	e->dest = s->packet.dest;
	return 0;
}

static __always_inline unsigned char *network(const struct sk_buff *skb)
{
	return skb->head + skb->network_header;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(toll_queue, struct sk_buff *skb)
{
	return packet(QUEUE, skb, network(skb), skb->dev->ifindex, skb->dev->nd_net.net);
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(toll_xmit, struct sk_buff *skb, struct net_device *dev)
{
	return packet(XMIT, skb, network(skb), dev->ifindex, dev->nd_net.net);
}

SEC("tp_btf/netif_rx")
int BPF_PROG(toll_rx, struct sk_buff *skb)
{
	return packet(RX, skb, skb->data, skb->dev->ifindex, skb->dev->nd_net.net);
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(toll_receive, struct sk_buff *skb)
{
	return packet(RECEIVE, skb, skb->data, skb->dev->ifindex, skb->dev->nd_net.net);
}

SEC("netfilter")
int toll_hook_in(struct bpf_nf_ctx *ctx)
{
	packet(HOOK_IN, ctx->skb, network(ctx->skb), ctx->state->hook, ctx->state->net);
	return 1; // NF_ACCEPT
}

SEC("netfilter")
int toll_hook_out(struct bpf_nf_ctx *ctx)
{
	packet(HOOK_OUT, ctx->skb, network(ctx->skb), ctx->state->hook, ctx->state->net);
	return 1;
}

SEC("netfilter")
int toll_nat_in(struct bpf_nf_ctx *ctx)
{
	packet(NAT_IN, ctx->skb, network(ctx->skb), ctx->state->hook, ctx->state->net);
	return 1;
}

SEC("netfilter")
int toll_nat_out(struct bpf_nf_ctx *ctx)
{
	packet(NAT_OUT, ctx->skb, network(ctx->skb), ctx->state->hook, ctx->state->net);
	return 1;
}

// after records a step that has no packet, right after the steps of one.
static __always_inline int after(__u8 kind, __u32 kinds)
{
	struct slot *s;
	__s64 now;

	s = recording(&now);
	if (s && kinds >> (s->kind & 31) & 1)
		add(s, kind, now);
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(toll_softirq, unsigned int vec)
{
	return vec == NET_RX_SOFTIRQ ? after(SOFTIRQ, 1 << RX) : 0;
}

#define ROUTED (1 << SEND | 1 << RECEIVE | 1 << ROUTE | 1 << HOOK_IN | 1 << HOOK_OUT | 1 << NAT_IN | 1 << NAT_OUT)

SEC("tp_btf/fib_table_lookup")
int BPF_PROG(toll_route)
{
	return after(ROUTE, ROUTED);
}

SEC("tp_btf/fib6_table_lookup")
int BPF_PROG(toll_route6)
{
	return after(ROUTE, ROUTED);
}

static __always_inline bool is_inet(const struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_INET || sk->__sk_common.skc_family == AF_INET6;
}

static __always_inline void name(struct event *e, const struct sock *sk)
{
	e->netns = sk->__sk_common.skc_net.net->ns.inum;
	e->source = sk->__sk_common.skc_num;
	e->dest = bpf_ntohs(sk->__sk_common.skc_dport);
}

static __always_inline bool has_our_port(const struct sock *sk)
{
	return is_inet(sk) && (is_our_port(sk->__sk_common.skc_num) || is_our_port(bpf_ntohs(sk->__sk_common.skc_dport)));
}

static __always_inline struct event *add_socket(__u8 kind, const struct sock *sk)
{
	struct event *e;
	struct slot *s;
	__s64 now;

	s = recording(&now);
	if (!s)
		return 0;
	s->last = 0; // whatever comes next is a new packet
	e = add(s, kind, now);
	if (e) {
		e->ptr = (__u64)sk;
		name(e, sk);
	}
	return e;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(toll_tcp, struct sock *sk, struct sk_buff *skb)
{
	struct tcp_skb_cb *cb = (void *)skb->cb;
	__u32 seq, end;
	struct event *e;
	struct slot *s;
	__s64 now;

	if (!has_our_port(sk))
		return 0;
	seq = BPF_CORE_READ(cb, seq);
	end = BPF_CORE_READ(cb, end_seq);
	if (seq == end)
		return 0;
	s = recording(&now);
	if (!s)
		return 0;
	e = add(s, TCP, now);
	if (!e)
		return 0;
	e->ptr = (__u64)skb;
	e->dev = skb->skb_iif;
	e->netns = sk->__sk_common.skc_net.net->ns.inum;
	e->seq = seq;
	e->len = end - seq;
	e->source = bpf_ntohs(sk->__sk_common.skc_dport);
	e->dest = sk->__sk_common.skc_num;
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(toll_ready, struct sock *sk)
{
	struct tcp_sock *t;
	struct event *e;

	if (!has_our_port(sk))
		return 0;
	e = add_socket(READY, sk);
	if (!e)
		return 0;
	t = bpf_skc_to_tcp_sock(sk);
	if (t)
		e->seq = t->rcv_nxt;
	return 0;
}

// add_call records a call of ours on a socket, and up to which byte it wrote or copied.
static __always_inline int add_call(__u8 kind, struct sock *sk, int len)
{
	struct tcp_sock *t;
	struct event *e;

	if (!is_ours(bpf_get_current_pid_tgid() >> 32) || !is_inet(sk))
		return 0;
	e = add_socket(kind, sk);
	if (!e)
		return 0;
	e->len = len;
	t = bpf_skc_to_tcp_sock(sk);
	if (t)
		e->seq = kind == READ ? t->copied_seq : t->write_seq;
	return 0;
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(toll_send, struct sock *sk)
{
	return add_call(SEND, sk, 0);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(toll_sent, struct sock *sk, int ret)
{
	return add_call(SENT, sk, ret);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(toll_read, struct sock *sk, int ret)
{
	return add_call(READ, sk, ret);
}

SEC("tp_btf/skb_copy_datagram_iovec")
int BPF_PROG(toll_copy, struct sk_buff *skb, int len)
{
	struct tcp_skb_cb *cb = (void *)skb->cb;
	struct sock *sk = skb->sk;
	struct event *e;
	struct slot *s;
	__s64 now;

	if (!is_ours(bpf_get_current_pid_tgid() >> 32) || !sk || !is_inet(sk))
		return 0;
	s = recording(&now);
	if (!s)
		return 0;
	e = add(s, COPY, now);
	if (!e)
		return 0;
	e->ptr = (__u64)skb;
	e->len = len;
	name(e, sk);
	if (sk->sk_protocol == IPPROTO_TCP)
		e->seq = BPF_CORE_READ(cb, seq);
	return 0;
}

static __always_inline int add_number(__u8 kind, __u32 number)
{
	struct event *e;
	struct slot *s;
	__s64 now;

	s = recording(&now);
	if (!s)
		return 0;
	e = add(s, kind, now);
	if (e)
		e->dev = number;
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(toll_waking, struct task_struct *p)
{
	return is_ours(p->tgid) ? add_number(WAKING, p->pid) : 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(toll_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return is_ours(next->tgid) || is_ours(prev->tgid) ? add_number(SWITCH, next->pid) : 0;
}

SEC("tp_btf/ipi_send_cpu")
int BPF_PROG(toll_ipi, unsigned int cpu)
{
	__u32 here = bpf_get_smp_processor_id();

	if (here >= MAX_CPUS || state.slots[here].kind != WAKING)
		return 0;
	return add_number(IPI, cpu);
}
