#!/bin/bash
# One would guess that `blpop(key, 5.0)` of Rust's Redis client waits up to 5 s for an element, and
# that one that is pushed meanwhile is returned by it, or stays in the list.
#
# It fails after half a second: since version 1 each command on an asynchronous connection has that
# long by default, blocking ones too (redis-rs issue 2269, open). The crate's notes on upgrading say
# to adjust the timeout for them, and the connection's page that a request goes on at the server;
# neither says what that costs. The server gives an element that is pushed after 1 s to the
# connection, which drops it: it is in no list, and nobody has it. `set_response_timeout(None)` ends
# both.
#
# redis 1.8.1 (crates.io), redis-server 7.0.15-1~deb12u10 (Debian), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10 liblzf1=3.6-3 \
	libjemalloc2=5.3.0-1 liblua5.1-0=5.1.5-9 lua-bitop=1.0.2-7 lua-cjson=2.1.0+dfsg-2.2 \
	libhiredis0.14=0.14.1-3 libatomic1=12.2.0-14+deb12u1
export CARGO_PROFILE_DEV_DEBUG=0
cargo_build 'redis = { version = "=1.8.1", default-features = false, features = ["tokio-comp"] }' \
	'tokio = { version = "1", features = ["rt", "macros", "time"] }' <<'END'
use redis::{AsyncCommands, AsyncConnectionConfig, RedisResult};
use std::time::{Duration, Instant};

async fn wait(client: &redis::Client, config: AsyncConnectionConfig) -> RedisResult<()> {
    let mut other = client.get_multiplexed_async_connection().await?;
    let mut waiting = client.get_multiplexed_async_connection_with_config(&config).await?;
    let start = Instant::now();
    let push = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let _: usize = other.rpush("jobs", "job").await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        other.llen::<_, usize>("jobs").await.unwrap()
    });
    let popped: RedisResult<Option<(String, String)>> = waiting.blpop("jobs", 5.0).await;
    let took = start.elapsed();
    let left = push.await.unwrap();
    let again: RedisResult<Option<String>> = waiting.lpop("jobs", None).await;
    let text = match popped {
        Ok(job) => format!("{:?}", job.map(|j| j.1)),
        Err(e) => format!("timeout: {}", e.is_timeout()),
    };
    println!("{:.1} s, {}; left in the list: {}, {:?}", took.as_secs_f64(), text, left,
        again.unwrap());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let client = redis::Client::open(std::env::args().nth(1).unwrap()).unwrap();
    wait(&client, AsyncConnectionConfig::new()).await.unwrap();
    wait(&client, AsyncConnectionConfig::new().set_response_timeout(None)).await.unwrap();
}
END
port=$(free_port)
LD_LIBRARY_PATH=$(echo "$dir"/root/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH
root/usr/bin/redis-server --bind 127.0.0.1 --port "$port" --save '' --loglevel warning >redis.log &
wait_port "$port"
target/debug/finding "redis://127.0.0.1:$port" >seen
expect "blpop(5.0), an element after 1 s" \
	"0.5 s, timeout: true; left in the list: 0, None" "$(sed -n 1p seen)"
expect "the same without a response timeout" \
	'1.0 s, Some("job"); left in the list: 0, None' "$(sed -n 2p seen)"
